"""Shifts of the layout of a page, as Chromium's Layout Instability API counts them."""

from playwright.sync_api import Page

#: The sum of all shifts without those that follow an input. Entries of a frame are reported after the frame.
_SHIFT = """() => new Promise((found) => {
  let sum = 0;
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  const add = (entries) => { for (const each of entries) if (!each.hadRecentInput) sum += each.value; };
  observer.observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
    add(observer.takeRecords());
    found(sum);
  })));
})"""

#: What readers perceive as a page that stands still.
MOST_SHIFT = 0.05


def shift_of(page: Page) -> float:
    """The shifts since the page was opened."""
    found: float = page.evaluate(_SHIFT)
    return found
