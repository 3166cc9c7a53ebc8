// A line on a chart at the pointer, with its time; a click opens the page as of that time.
export function addCursors(root) {
  for (const chart of root.querySelectorAll("svg[data-start]")) {
    const start = Date.parse(chart.dataset.start);
    const end = Date.parse(chart.dataset.end);
    const left = Number(chart.dataset.left);
    const right = Number(chart.dataset.right);
    const line = chart.querySelector(".cursor");
    const readout = document.createElement("div");
    readout.className = "readout";
    readout.hidden = true;
    chart.parentElement.append(readout);

    const timeAt = (event) => {
      const box = chart.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      return x < left || x > right ? null : { x, at: new Date(start + ((x - left) / (right - left)) * (end - start)) };
    };
    chart.addEventListener("pointermove", (event) => {
      const found = timeAt(event);
      chart.classList.toggle("tracked", found !== null);
      readout.hidden = found === null;
      if (!found) return;
      line.setAttribute("x1", found.x);
      line.setAttribute("x2", found.x);
      readout.textContent = `${found.at.toISOString().slice(0, 19).replace("T", " ")} UTC: click to go there`;
      const box = chart.getBoundingClientRect();
      const place = (found.x / chart.viewBox.baseVal.width) * box.width;
      readout.style.left = `${Math.min(place + 8, box.width - readout.offsetWidth)}px`;
    });
    chart.addEventListener("pointerleave", () => {
      chart.classList.remove("tracked");
      readout.hidden = true;
    });
    chart.addEventListener("click", (event) => {
      const found = timeAt(event);
      if (!found) return;
      const url = new URL(location.href);
      url.searchParams.set("as_of", found.at.toISOString().slice(0, 19) + "Z");
      location.assign(url);
    });
  }
}
