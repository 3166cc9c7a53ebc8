// Follow new batches: the parts of the page that are marked data-live are replaced by those of a fresh one. Focus and scroll remain.
const QUIET_MS = 1000;

export function followBatches(page, whenChanged) {
  const url = page.body.dataset.events;
  const button = page.getElementById("live");
  if (!url || !button || button.tagName !== "BUTTON") return;
  let stream = null;
  let pending = null;

  const open = () => {
    stream = new EventSource(url);
    stream.addEventListener("batch", () => {
      clearTimeout(pending);
      pending = setTimeout(() => update(page, whenChanged), QUIET_MS);
    });
  };
  const close = () => {
    stream?.close();
    stream = null;
    clearTimeout(pending);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const isLive = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!isLive));
    button.textContent = isLive ? "paused" : "live";
    if (isLive) close();
    else {
      open();
      update(page, whenChanged);
    }
  });
  addEventListener("pagehide", close);
  open();
}

async function update(page, whenChanged) {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  const status = page.getElementById("updated");
  if (!answer?.ok) {
    status.textContent = "The server does not answer: the page shows an earlier batch.";
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  let changed = 0;
  for (const part of page.querySelectorAll("[data-live]")) {
    const other = fresh.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
    if (!other || other.innerHTML === part.innerHTML || part.querySelector("details[open]")) continue;
    if (part.contains(page.activeElement)) continue;
    const places = [...part.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    part.className = other.className;
    part.replaceChildren(...other.childNodes);
    part.querySelectorAll(".scroll").forEach((each, number) => each.scrollTo(...(places[number] ?? [0, 0])));
    whenChanged(part);
    changed += 1;
  }
  const field = page.getElementById("as-of");
  const now = fresh.getElementById("as-of");
  if (field && now && page.activeElement !== field) field.value = now.value;
  const footer = fresh.querySelector("footer p");
  if (footer) page.querySelector("footer p").replaceChildren(...footer.childNodes);
  if (changed) status.textContent = `Updated at ${now?.value ?? ""}: ${changed} ${changed === 1 ? "part" : "parts"} changed.`;
}
