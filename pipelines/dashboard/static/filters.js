// A choice in a form of filters applies at once; a text applies with Enter.
export function applyFilters(page) {
  for (const form of page.querySelectorAll("form.filters")) {
    form.addEventListener("change", ({ target }) => {
      if (target.matches("select")) form.requestSubmit();
    });
  }
}
