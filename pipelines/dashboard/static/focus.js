// A control in a region that scrolls sideways is brought into view as a whole when the keyboard reaches it.
export function showFocus(page) {
  page.addEventListener("focusin", ({ target }) => {
    // a pointer has it in view, and must not lose it before its click
    if (target.closest(".scroll") && !target.matches(".scroll") && target.matches(":focus-visible")) {
      target.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  });
}
