import { fieldTime, zoneAt } from "./times.js";

/** Pixels between the pointer and a mark whose words it shows, and half the width of the thumb. */
const [NEAR_PX, THUMB_PX] = [6, 6];

// The slider of time: the page opens at the time at which it is released, or with Enter after arrow keys, a sample each, or after
// PageUp and PageDown, an event each. The words of a mark appear at the pointer and, for readers of the screen, beside the time.
export function addSlider(page) {
  const row = page.getElementById("slider");
  if (!row) return;
  const slider = row.querySelector("input");
  const field = page.getElementById("as-of");
  const textAt = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
  const events = () => JSON.parse(slider.dataset.events);
  const wordsAt = (from, to) => events().filter(([at]) => from <= at && at <= to).map(([, words]) => words).join(", ");
  row.hidden = false;
  const move = (words) => {
    field.value = fieldTime(textAt(slider.value));
    slider.setAttribute("aria-valuetext", words ? `${field.value}: ${words}` : field.value);
  };
  slider.addEventListener("input", () => move(""));
  const go = () => {
    const url = new URL(location.href);
    const now = Number(slider.value);
    url.searchParams.delete("as_of");
    // the server knows the first batch that shows an event
    if (now < Number(slider.max)) url.searchParams.set(events().some(([at]) => at === now) ? "event" : "as_of", textAt(now));
    location.assign(url);
  };
  slider.addEventListener("change", go);
  slider.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    const jump = { PageDown: -1, PageUp: 1 }[event.key];
    if (event.key === "Enter") go();
    if (!steps && !jump) return;
    // without its own step the browser sends no change, so the page is not loaded for each one
    event.preventDefault();
    const now = Number(slider.value);
    if (steps) slider.value = now + steps * Number(slider.dataset.step);
    else {
      const times = events().map(([at]) => at);
      slider.value = (jump < 0 ? times.findLast((at) => at < now) : times.find((at) => at > now)) ?? now;
    }
    move(jump ? wordsAt(Number(slider.value), Number(slider.value)) : "");
  });
  addReadout(slider, textAt, wordsAt);
}

function addReadout(slider, textAt, wordsAt) {
  const readout = document.createElement("div");
  readout.className = "readout";
  readout.hidden = true;
  slider.after(readout);
  slider.addEventListener("pointermove", ({ clientX }) => {
    const box = slider.getBoundingClientRect();
    const [min, max] = [slider.min, slider.max].map(Number);
    const secondsAt = (x) => min + ((x - box.left - THUMB_PX) / (box.width - 2 * THUMB_PX)) * (max - min);
    const words = wordsAt(secondsAt(clientX - NEAR_PX), secondsAt(clientX + NEAR_PX));
    readout.hidden = !words;
    if (!words) return;
    const at = Math.round(Math.min(max, Math.max(min, secondsAt(clientX))));
    const time = document.createElement("strong");
    time.textContent = `${fieldTime(textAt(at))} ${zoneAt(new Date(at * 1000))}`;
    readout.replaceChildren(time, ` ${words}`);
    const last = box.width - readout.offsetWidth;
    readout.style.left = `${Math.max(0, Math.min(last, clientX - box.left - readout.offsetWidth / 2))}px`;
  });
  slider.addEventListener("pointerleave", () => {
    readout.hidden = true;
  });
}
