import { fieldTime } from "./times.js";

// The slider of time: the page opens at the time at which it is released, or with Enter after arrow keys, a sample each.
export function addSlider(page) {
  const row = page.getElementById("slider");
  if (!row) return;
  const slider = row.querySelector("input");
  const field = page.getElementById("as-of");
  const text = () => new Date(Number(slider.value) * 1000).toISOString().slice(0, 19).replace("T", " ");
  row.hidden = false;
  slider.addEventListener("input", () => {
    field.value = fieldTime(text());
    slider.setAttribute("aria-valuetext", field.value);
  });
  const go = () => {
    const url = new URL(location.href);
    if (Number(slider.value) >= Number(slider.max)) url.searchParams.delete("as_of");
    else url.searchParams.set("as_of", text());
    location.assign(url);
  };
  slider.addEventListener("change", go);
  slider.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (event.key === "Enter") go();
    if (!steps) return;
    // without its own step the browser sends no change, so the page is not loaded for each one
    event.preventDefault();
    slider.value = Number(slider.value) + steps * Number(slider.dataset.step);
    slider.dispatchEvent(new Event("input"));
  });
}
