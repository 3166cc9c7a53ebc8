// A choice in a form of filters applies at once; a text applies with Enter, a text of several lines with Ctrl+Enter.
export function applyFilters(page) {
  for (const form of page.querySelectorAll("form.filters")) {
    form.addEventListener("change", ({ target }) => {
      if (target.matches("select")) form.requestSubmit();
    });
    form.addEventListener("keydown", ({ target, key, ctrlKey, metaKey }) => {
      if (target.matches("textarea") && key === "Enter" && (ctrlKey || metaKey)) form.requestSubmit();
    });
  }
}
