import { fieldTime } from "./times.js";

// Follow new batches: the parts of the page that are marked data-live are replaced by those of a fresh one. Focus and scroll remain.
// A part that the fresh page does not have is hidden and keeps its place; one that this page does not have needs a reload.
const QUIET_MS = 1000;

export function followBatches(page, whenChanged) {
  const url = page.body.dataset.events;
  const button = page.getElementById("live");
  if (!url || !button || button.tagName !== "BUTTON") return;
  // scripts add to the parts, so a part is compared with what the server sent, not with what the page has
  const sent = new Map([...page.querySelectorAll("[data-live]")].map((part) => [part.dataset.live, part.innerHTML]));
  let stream = null;
  let pending = null;

  const open = () => {
    stream = new EventSource(url);
    // a new batch, or the newest one has become old
    for (const name of ["batch", "age"]) {
      stream.addEventListener(name, () => {
        clearTimeout(pending);
        pending = setTimeout(() => update(page, sent, whenChanged), QUIET_MS);
      });
    }
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
    button.textContent = isLive ? "paused" : button.dataset.label;
    if (isLive) close();
    else {
      open();
      update(page, sent, whenChanged);
    }
  });
  addEventListener("pagehide", close);
  open();
}

async function update(page, sent, whenChanged) {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  const status = page.getElementById("updated");
  if (!answer?.ok) {
    status.textContent = "The server does not answer: the page shows an earlier batch.";
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const held = heldElement(page);
  const top = held?.getBoundingClientRect().top;
  let changed = 0;
  for (const part of page.querySelectorAll("[data-live]")) {
    const name = part.dataset.live;
    const other = fresh.querySelector(`[data-live="${CSS.escape(name)}"]`);
    const isGone = part.classList.contains("gone");
    if (other ? other.innerHTML === sent.get(name) && !isGone : isGone) continue;
    // what a reader has opened or is at remains as it is
    if (part.querySelector("details[open]") || part.contains(page.activeElement)) continue;
    if (other) renew(part, other, sent, whenChanged);
    else part.classList.add("gone");
    changed += 1;
  }
  if (held) scrollBy(0, held.getBoundingClientRect().top - top);
  moveTime(page, fresh);
  markAge(page, fresh);
  whenChanged(page.querySelector(".bar"));
  const [footer, newest] = [page, fresh].map((each) => each.querySelector("footer p"));
  if (newest && !footer.contains(page.activeElement)) footer.replaceChildren(...newest.childNodes);
  whenChanged(page.querySelector("footer"));
  const now = fieldTime(fresh.getElementById("as-of")?.value ?? "");
  if (changed) status.textContent = `Updated at ${now}: ${changed} ${changed === 1 ? "part" : "parts"} changed.`;
}

/** Replace the content of a part, or the part if the other one is another element, such as a sentence instead of a list. */
function renew(part, other, sent, whenChanged) {
  sent.set(part.dataset.live, other.innerHTML);
  if (part.tagName !== other.tagName) {
    part.replaceWith(other);
    whenChanged(other);
    return;
  }
  const places = [...part.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
  part.className = other.className;
  part.replaceChildren(...other.childNodes);
  part.querySelectorAll(".scroll").forEach((each, number) => each.scrollTo(...(places[number] ?? [0, 0])));
  whenChanged(part);
}

/** What stays where it is when parts above it become longer: the element with the focus if a reader sees it, otherwise a heading. */
function heldElement(page) {
  const isSeen = (element) => {
    const place = element.getBoundingClientRect();
    return place.bottom > 0 && place.top < innerHeight;
  };
  const element = page.activeElement;
  if (element && element !== page.body && isSeen(element)) return element;
  // at the top of the page new lines are read
  return scrollY > 0 ? ([...page.querySelectorAll("main h2")].find(isSeen) ?? null) : null;
}

/** The button says whether the data is as new as expected. */
function markAge(page, fresh) {
  const [button, now] = [page, fresh].map((each) => each.getElementById("live"));
  if (!button || now?.tagName !== "BUTTON") return;
  button.className = now.className;
  button.dataset.label = now.dataset.label;
  if (button.getAttribute("aria-pressed") === "true") button.textContent = now.dataset.label;
}

/** The field, the link and the slider of the time, unless one of them has the focus. */
function moveTime(page, fresh) {
  if (page.querySelector(".bar :is(input, .step):focus")) return;
  for (const [id, name] of [["as-of", "value"], ["earlier", "href"]]) {
    const [old, now] = [page.getElementById(id), fresh.getElementById(id)];
    if (old && now) old.setAttribute(name, now.getAttribute(name));
    if (old && now && name === "value") old.value = now.value;
  }
  const [slider, now] = [page, fresh].map((each) => each.querySelector("#slider input"));
  if (!slider || !now) return;
  slider.max = now.max;
  slider.value = now.value;
  slider.dataset.events = now.dataset.events;
  page.querySelector("#slider svg")?.remove();
  const marks = fresh.querySelector("#slider svg");
  if (marks) slider.before(marks);
  slider.setAttribute("aria-valuetext", now.getAttribute("aria-valuetext"));
  page.querySelector("#slider time:last-of-type").replaceWith(fresh.querySelector("#slider time:last-of-type"));
}
