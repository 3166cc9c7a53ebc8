// Keyboard: / search, j and k rows, [ and ] time, g and a letter a page, ? the list. They can be switched off (WCAG 2.1.4).
const KEY = "grouplake-shortcuts";
const PAGES = { o: "overview", g: "groups", t: "topics", c: "clients", l: "offsets-topic", a: "alerts" };

export function addShortcuts(page) {
  let isAfterG = false;
  page.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(KEY) === "off") return;
    if (event.target.closest("input, select, textarea, dialog, [contenteditable]")) return;
    const { key } = event;
    if (isAfterG && PAGES[key]) {
      page.querySelector(`nav [data-page="${PAGES[key]}"]`)?.click();
    } else if (key === "/") {
      const search = page.getElementById("search");
      if (!search) return;
      event.preventDefault();
      search.focus();
    } else if (key === "[" || key === "]") {
      page.getElementById(key === "[" ? "earlier" : "later")?.click();
    } else if (key === "j" || key === "k") {
      moveRow(page, key === "j" ? 1 : -1);
    } else if (key === "?") {
      page.getElementById("shortcuts")?.showModal();
    }
    isAfterG = key === "g" && !isAfterG;
  });
  const box = page.getElementById("shortcuts-on");
  if (!box) return;
  box.checked = localStorage.getItem(KEY) !== "off";
  box.addEventListener("change", () => localStorage.setItem(KEY, box.checked ? "on" : "off"));
  page.getElementById("shortcuts-open").hidden = false;
  page.getElementById("shortcuts-open").addEventListener("click", () => page.getElementById("shortcuts").showModal());
}

function moveRow(page, step) {
  const links = [...page.querySelectorAll("main tbody tr")].map((row) => row.querySelector("a")).filter((each) => each?.checkVisibility());
  const now = links.findIndex((each) => each.closest("tr").contains(page.activeElement));
  links[Math.min(links.length - 1, Math.max(0, now + step))]?.focus();
}
