import { fieldTime, zoneAt } from "./times.js";

// A line on a chart at the pointer, the finger or the arrow keys, with the values at its time. A click or Enter opens that time.
// A drag, or arrow keys with Shift, select a span of time; its end or Enter opens the page at that span, Escape leaves it.
const SVG = "http://www.w3.org/2000/svg";
/** Pixels that a pointer moves before a click becomes a drag. */
const DRAG_PX = 5;

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
  // charts of results of SQL are not of the span of the page
  const canSelect = "zoom" in chart.dataset;
  const band = document.createElementNS(SVG, "rect");
  band.classList.add("selected");
  line.before(band);
  // where the pointer went down, the other end of the selection, and whether the next click ends a drag
  let pressed = null;
  let anchor = null;
  let isDragged = false;

  const textAt = (x) => new Date(start + ((x - left) / (right - left)) * (end - start)).toISOString().slice(0, 19);
  const urlAt = (x) => {
    const url = new URL(location.href);
    url.searchParams.set("as_of", `${textAt(x)}Z`);
    return url;
  };
  const clearSelection = () => {
    pressed = null;
    anchor = null;
    band.classList.remove("shown");
  };
  const openSelection = () => location.assign(urlOfSpan(...[anchor, shown].sort((one, other) => one - other)));
  const urlOfSpan = (from, to) => {
    const url = urlAt(to);
    url.searchParams.set("span", spanOf((Date.parse(`${textAt(to)}Z`) - Date.parse(`${textAt(from)}Z`)) / 1000));
    return url;
  };
  const select = (from, to) => {
    anchor = from;
    show(to, "");
    band.setAttribute("x", Math.min(from, to));
    band.setAttribute("width", Math.abs(to - from));
    band.setAttribute("y", line.getAttribute("y1"));
    band.setAttribute("height", line.getAttribute("y2") - line.getAttribute("y1"));
    band.classList.add("shown");
  };
  const hide = () => {
    clearSelection();
    shown = null;
    chart.classList.remove("tracked");
    readout.hidden = true;
  };
  const show = (x, words) => {
    shown = x;
    chart.classList.add("tracked");
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    const ends = anchor === null ? [x] : [anchor, x].sort((one, other) => one - other);
    const go = made("a", anchor === null ? goWords(byTouch, canSelect) : "Release or Enter: open this span. Escape: leave it");
    go.href = anchor === null ? urlAt(x) : urlOfSpan(...ends);
    const rows = series.map(([title, points]) => [made("dt", title), made("dd", valueAt(points, x))]).flat();
    const values = document.createElement("dl");
    values.append(...rows);
    readout.classList.toggle("held", byTouch);
    const times = ends.map((each) => fieldTime(textAt(each).replace("T", " "))).join(" – ");
    readout.replaceChildren(made("strong", `${times} ${zoneAt(new Date(`${textAt(x)}Z`))}`), ...(words ? [made("p", words)] : []), values, go);
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
    const inside = Math.min(right, Math.max(left, x));
    if (pressed !== null && (anchor !== null || Math.abs(event.clientX - pressed.clientX) >= DRAG_PX)) select(pressed.x, inside);
    else if (x !== inside) hide();
    else show(x, wordsOf(event.target));
  };
  chart.addEventListener("pointerdown", (event) => {
    clearSelection();
    isDragged = false;
    showPointer(event);
    // a finger scrolls
    if (!canSelect || byTouch || event.button !== 0 || shown === null) return;
    pressed = { x: shown, clientX: event.clientX };
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener("pointermove", showPointer);
  chart.addEventListener("pointerup", () => {
    if (pressed !== null && anchor !== null) {
      isDragged = true;
      openSelection();
    }
    clearSelection();
  });
  chart.addEventListener("pointercancel", hide);
  chart.addEventListener("pointerleave", (event) => {
    // a finger is lifted to read
    if (!byTouch) hide();
  });
  chart.addEventListener("click", () => {
    if (!byTouch && !isDragged && shown !== null) location.assign(urlAt(shown));
  });
  region.addEventListener("keydown", (event) => {
    if (event.target !== region || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && shown !== null) {
      if (anchor === null) location.assign(urlAt(shown));
      else openSelection();
    }
    if (event.key === "Escape") {
      // the release of a drag that was left is no click
      isDragged = anchor !== null;
      hide();
    }
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    byTouch = false;
    const from = shown ?? right;
    const to = nextSample(series, from, event.key === "ArrowLeft" ? -1 : 1, left, right);
    if (canSelect && event.shiftKey) select(anchor ?? from, to);
    else {
      clearSelection();
      show(to, "");
    }
    line.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  region.addEventListener("focusout", (event) => {
    if (!region.contains(event.relatedTarget)) hide();
  });
}

function goWords(byTouch, canSelect) {
  if (byTouch) return "Go to this time";
  return `Click or Enter: go to this time${canSelect ? ". Drag, or Shift and arrows: select a span" : ""}`;
}

/** A span of the address, rounded up to minutes, or to hours if the minutes have more than four digits. */
function spanOf(seconds) {
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  return minutes <= 9999 ? `${minutes}m` : `${Math.ceil(minutes / 60)}h`;
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
