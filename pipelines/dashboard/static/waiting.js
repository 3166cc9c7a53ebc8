// A cluster without a batch: the progress of its job is shown as it goes on, and the page is loaded once there is one.
const LOOK_MS = 1000;

async function look() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" }).catch(() => null);
  if (answer && answer.status !== 503) {
    location.reload();
    return;
  }
  if (answer) show(new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("waiting"));
  else document.getElementById("waiting").textContent = "The server does not answer.";
  setTimeout(look, LOOK_MS);
}

function show(fresh) {
  const shown = document.getElementById("waiting");
  // a screen reader reads every change aloud
  if (fresh && fresh.innerHTML !== shown.innerHTML) shown.replaceChildren(...fresh.childNodes);
}

setTimeout(look, LOOK_MS);
