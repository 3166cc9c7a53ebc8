// The slider of time: the page opens at the time at which it is released, or with Enter after arrow keys,
// a sample each, or after Page Up and Page Down, which go to the next and the previous mark.
import { addMarks } from "./marks.js";

export function addSlider(page) {
  const row = page.getElementById("slider");
  if (!row) return;
  const slider = row.querySelector("input");
  const field = page.getElementById("as-of");
  const text = () => new Date(Number(slider.value) * 1000).toISOString().slice(0, 19).replace("T", " ");
  row.hidden = false;
  const marks = row.dataset.marks ? addMarks(row, slider) : null;
  slider.addEventListener("input", () => {
    field.value = text();
    const words = marks?.showAt(Number(slider.value)) ?? "";
    slider.setAttribute("aria-valuetext", words ? `${text()}, ${words}` : text());
  });
  const go = () => {
    const url = new URL(location.href);
    if (Number(slider.value) >= Number(slider.max)) url.searchParams.delete("as_of");
    else url.searchParams.set("as_of", text());
    location.assign(url);
  };
  const moveTo = (seconds, event) => {
    event.preventDefault();
    slider.value = seconds;
    slider.dispatchEvent(new Event("input"));
  };
  slider.addEventListener("change", go);
  slider.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (event.key === "Enter") go();
    const jump = { PageDown: marks?.before, PageUp: marks?.after }[event.key];
    if (jump) moveTo(jump(Number(slider.value)), event);
    if (!steps) return;
    // without its own step the browser sends no change, so the page is not loaded for each one
    moveTo(Number(slider.value) + steps * Number(slider.dataset.step), event);
  });
}
