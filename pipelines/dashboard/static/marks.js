// Marks on the slider of time at events of the group. Their words appear at the pointer and at the thumb.
const NEAR_PX = 6;

export function addMarks(row, slider) {
  const track = slider.parentElement;
  const strip = document.createElement("span");
  strip.className = "marks";
  strip.setAttribute("aria-hidden", "true");
  const words = document.createElement("div");
  words.className = "readout";
  words.hidden = true;
  track.prepend(strip);
  track.append(words);
  let marks = [];

  const bounds = () => [Number(slider.min), Number(slider.max)];
  const draw = () => {
    const [first, last] = bounds();
    strip.replaceChildren(...marks.map((mark) => line(mark.kind, (mark.at - first) / Math.max(1, last - first))));
  };
  const load = async () => {
    const answer = await fetch(row.dataset.marks).catch(() => null);
    if (!answer?.ok) return;
    // the value of the slider is a whole second, and the page of the second before does not have the event
    marks = (await answer.json()).marks.map((mark) => ({ ...mark, at: Math.ceil(Date.parse(mark.at) / 1000) }));
    draw();
  };
  /** Show the words of the mark near a time, and return them; none is near an empty place. */
  const showAt = (seconds) => {
    const [first, last] = bounds();
    const perPixel = (last - first) / Math.max(1, strip.clientWidth);
    const [mark] = [...marks].sort((one, other) => Math.abs(one.at - seconds) - Math.abs(other.at - seconds));
    words.hidden = !mark || Math.abs(mark.at - seconds) > NEAR_PX * perPixel;
    if (words.hidden) return "";
    const time = document.createElement("strong");
    time.textContent = `${new Date(mark.at * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
    const text = document.createElement("p");
    text.textContent = mark.words;
    words.replaceChildren(time, text);
    const place = strip.offsetLeft + ((mark.at - first) / Math.max(1, last - first)) * strip.clientWidth;
    words.style.left = `${Math.max(0, Math.min(track.clientWidth - words.offsetWidth, place - words.offsetWidth / 2))}px`;
    return mark.words;
  };
  const hide = () => {
    words.hidden = true;
  };
  track.addEventListener("pointermove", (event) => {
    const [first, last] = bounds();
    const box = strip.getBoundingClientRect();
    showAt(first + ((event.clientX - box.left) / Math.max(1, box.width)) * (last - first));
  });
  track.addEventListener("pointerleave", hide);
  slider.addEventListener("blur", hide);
  // a new batch moves the end of the slider
  slider.addEventListener("scale", load);
  load();
  return {
    showAt,
    // beyond the marks are the ends of the slider
    before: (seconds) => marks.findLast((mark) => mark.at < seconds)?.at ?? bounds()[0],
    after: (seconds) => marks.find((mark) => mark.at > seconds)?.at ?? bounds()[1],
  };
}

function line(kind, share) {
  const drawn = document.createElement("span");
  drawn.className = kind;
  drawn.style.left = `${share * 100}%`;
  return drawn;
}
