// The slider of time: the page opens at the time at which it is released.
export function addSlider(page) {
  const row = page.getElementById("slider");
  if (!row) return;
  const slider = row.querySelector("input");
  const field = page.getElementById("as-of");
  const text = () => new Date(Number(slider.value) * 1000).toISOString().slice(0, 19).replace("T", " ");
  row.hidden = false;
  slider.addEventListener("input", () => {
    field.value = text();
    slider.setAttribute("aria-valuetext", text());
  });
  slider.addEventListener("change", () => {
    const url = new URL(location.href);
    if (Number(slider.value) >= Number(slider.max)) url.searchParams.delete("as_of");
    else url.searchParams.set("as_of", text());
    location.assign(url);
  });
}
