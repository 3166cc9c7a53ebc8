// Times in the zone of the reader, if that is chosen: the server writes UTC, also into the addresses. The choice is kept in this browser.
const KEY = "grouplake-times";
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const FIELD = /^\s*\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?\s*$/;

const isLocal = () => localStorage.getItem(KEY) === "local";

/** `CET`, `GMT+5:30`; `UTC` unless local times are chosen. */
export function zoneAt(at) {
  if (!isLocal()) return "UTC";
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(at);
  return parts.find(({ type }) => type === "timeZoneName").value;
}

/** `2026-03-01 12:00:05` in UTC, in the zone of the page. */
export function fieldTime(text) {
  if (!isLocal() || !FIELD.test(text)) return text;
  return isoOf(partsOf(new Date(`${text.trim().replace(" ", "T")}Z`)));
}

/** Add the control, and write the times of the page in the zone that is chosen. */
export function addTimes(page) {
  const label = page.getElementById("utc");
  if (!label) return;
  const control = page.createElement("button");
  control.type = "button";
  control.id = "utc";
  control.className = "zone";
  label.replaceWith(control);
  control.addEventListener("click", () => {
    localStorage.setItem(KEY, isLocal() ? "utc" : "local");
    writeTimes(page);
  });
  page.addEventListener("formdata", ({ target, formData }) => {
    // addresses have UTC
    for (const { name, value } of target.querySelectorAll("input[data-time]")) {
      if (isLocal() && FIELD.test(value)) formData.set(name, new Date(value.trim().replace(" ", "T")).toISOString());
    }
  });
  writeTimes(page);
}

/** Write the times of a part in the zone that is chosen. */
export function writeTimes(part) {
  const field = document.getElementById("as-of");
  if (!field) return;
  const now = new Date(`${field.getAttribute("value").replace(" ", "T")}Z`);
  const write = isLocal() ? (each, at) => (each.closest(".ticks") ? tick : words)(each.dataset.utc, at, now) : (each) => each.dataset.utc;
  for (const each of part.querySelectorAll("time[datetime], [data-at]")) {
    each.dataset.utc ??= each.textContent;
    const text = write(each, new Date(each.dataset.at ?? each.dateTime));
    // a text that is written again is laid out again
    if (text !== each.textContent) each.textContent = text;
  }
  for (const each of part.querySelectorAll(".zone")) each.textContent = zoneAt(now);
  for (const each of part.querySelectorAll("input[data-time]")) {
    if (each !== document.activeElement) each.value = fieldTime(each.getAttribute("value"));
  }
  const [control, slider] = [part.querySelector("button.zone"), part.querySelector("#slider input")];
  control?.setAttribute("aria-label", `${control.textContent}: show ${isLocal() ? "UTC" : "local times"}`);
  slider?.setAttribute("aria-valuetext", fieldTime(new Date(Number(slider.value) * 1000).toISOString().slice(0, 19).replace("T", " ")));
}

/** A time in the form of its text in UTC; with the date if it is of another day than the page. */
function words(text, at, now) {
  if (!/\d:\d/.test(text) || Number.isNaN(at.valueOf())) return text;
  const [time, today] = [at, now].map(partsOf);
  const [hasSeconds, hasDate, hasComma] = [/:\d\d:/, /^\d+[ -]/, /,/].map((each) => each.test(text));
  const zone = text.endsWith(" UTC") ? ` ${zoneAt(at)}` : "";
  const date = `${time.day} ${MONTHS[time.month]}`;
  // `2026-03-01 12:00:05.250`, a value of a query, keeps its form
  if (hasSeconds && /^\d{4}-/.test(text)) return `${isoOf(time)}${text.slice(19)}`;
  if (hasSeconds && hasDate) return `${date} ${time.year}, ${time.minutes}:${time.seconds}${zone}`;
  if (time.date !== today.date && (hasSeconds || hasDate || zone)) {
    return `${date}${time.year === today.year ? "" : ` ${time.year}`}${hasComma || zone ? "," : ""} ${time.minutes}${zone}`;
  }
  return `${time.minutes}${hasSeconds || (hasDate && !zone) ? `:${time.seconds}` : ""}${zone}`;
}

/** A tick stays at its place, which is a round time in UTC. */
function tick(text, at) {
  const time = partsOf(at);
  const date = `${time.day} ${MONTHS[time.month]}`;
  if (time.minutes === "00:00" && time.seconds === "00") return date;
  return `${text.includes(":") ? "" : `${date} `}${time.minutes}${/:\d\d:/.test(text) ? `:${time.seconds}` : ""}`;
}

/** Parts of a time in the zone of the reader. */
function partsOf(at) {
  const [year, month, day] = [at.getFullYear(), at.getMonth(), at.getDate()];
  const date = `${year}-${month}-${day}`;
  return { year, month, day, date, minutes: `${two(at.getHours())}:${two(at.getMinutes())}`, seconds: two(at.getSeconds()) };
}

function isoOf({ year, month, day, minutes, seconds }) {
  return `${year}-${two(month + 1)}-${two(day)} ${minutes}:${seconds}`;
}

function two(number) {
  return String(number).padStart(2, "0");
}
