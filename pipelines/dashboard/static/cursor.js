import { fieldTime, zoneAt } from "./times.js";

// A line on a chart at the pointer, the finger or the arrow keys, with the values at its time. A click or Enter opens that time.
export function addCursors(root) {
  for (const chart of root.querySelectorAll("svg[data-start]")) addCursor(chart);
}

function addCursor(chart) {
  const region = chart.parentElement;
  const [start, end] = [chart.dataset.start, chart.dataset.end].map(Date.parse);
  const [left, right] = [chart.dataset.left, chart.dataset.right].map(Number);
  const width = chart.viewBox.baseVal.width;
  const line = chart.querySelector(".cursor");
  const series = [...chart.querySelectorAll("[data-values]")].map((panel) => [panel.dataset.title, pointsOf(panel.dataset.values)]);
  const readout = document.createElement("div");
  readout.className = "readout";
  readout.hidden = true;
  readout.setAttribute("role", "status");
  region.append(readout);
  let shown = null;
  let byTouch = false;

  const textAt = (x) => new Date(start + ((x - left) / (right - left)) * (end - start)).toISOString().slice(0, 19);
  const urlAt = (x) => {
    const url = new URL(location.href);
    url.searchParams.set("as_of", `${textAt(x)}Z`);
    return url;
  };
  const hide = () => {
    shown = null;
    chart.classList.remove("tracked");
    readout.hidden = true;
  };
  const show = (x, words) => {
    shown = x;
    chart.classList.add("tracked");
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    const go = made("a", byTouch ? "Go to this time" : "Click or Enter: go to this time");
    go.href = urlAt(x);
    const rows = series.map(([title, points]) => [made("dt", title), made("dd", valueAt(points, x))]).flat();
    const values = document.createElement("dl");
    values.append(...rows);
    readout.classList.toggle("held", byTouch);
    readout.replaceChildren(made("strong", `${fieldTime(textAt(x).replace("T", " "))} ${zoneAt(new Date(`${textAt(x)}Z`))}`), ...(words ? [made("p", words)] : []), values, go);
    readout.hidden = false;
    // the region may be scrolled, and begins at its right end on a phone
    const [box, outer] = [chart, region].map((each) => each.getBoundingClientRect());
    const place = box.left - outer.left + region.scrollLeft + (x / width) * box.width;
    const last = region.scrollLeft + region.clientWidth - readout.offsetWidth;
    const wanted = place + 12 > last ? place - 12 - readout.offsetWidth : place + 12;
    readout.style.left = `${Math.max(region.scrollLeft, Math.min(last, wanted))}px`;
  };
  const showPointer = (event) => {
    byTouch = event.pointerType === "touch";
    const box = chart.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    if (x < left || x > right) hide();
    else show(x, wordsOf(event.target));
  };
  for (const name of ["pointerdown", "pointermove"]) chart.addEventListener(name, showPointer);
  chart.addEventListener("pointerleave", (event) => {
    // a finger is lifted to read
    if (!byTouch) hide();
  });
  chart.addEventListener("click", () => {
    if (!byTouch && shown !== null) location.assign(urlAt(shown));
  });
  region.addEventListener("keydown", (event) => {
    if (event.target !== region || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && shown !== null) location.assign(urlAt(shown));
    if (event.key === "Escape") hide();
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    byTouch = false;
    show(nextSample(series, shown ?? right, event.key === "ArrowLeft" ? -1 : 1, left, right), "");
    line.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  region.addEventListener("focusout", (event) => {
    if (!region.contains(event.relatedTarget)) hide();
  });
}

/** An owner, or the events of a mark. */
function wordsOf(target) {
  return target.dataset.words ?? (target.matches(".over") ? target.textContent : "");
}

/** `132.5=25,862 records|140=` as places with their texts; an empty text begins a gap. */
function pointsOf(text) {
  return text.split("|").filter(Boolean).map((point) => [parseFloat(point), point.slice(point.indexOf("=") + 1)]);
}

/** The text of the last sample that is not after the place. */
function valueAt(points, x) {
  return points.findLast(([at]) => at <= x)?.[1] || "no data";
}

function nextSample(series, x, step, left, right) {
  const places = series.flatMap(([, points]) => points.map(([at]) => at)).sort((one, other) => one - other);
  const found = step < 0 ? places.findLast((at) => at < x - 0.05) : places.find((at) => at > x + 0.05);
  return found ?? (step < 0 ? left : right);
}

function made(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}
