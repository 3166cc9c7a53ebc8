"""Pages in one headless Chromium, as different readers see them, with a record of their errors.

with launched() as browser, opened(browser, view("dark", 390), url) as visit:
    assert visit.errors == []
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from chromium import chromium
from patience import BROWSER_SECONDS
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, sync_playwright

_TIMEOUT_MS = BROWSER_SECONDS * 1000
PHONE, TABLET, DESKTOP = 390, 768, 1280
#: Pages of errors have no storage.
_FORGET = "() => { try { localStorage.clear(); sessionStorage.clear(); } catch { } }"
#: The width at which WCAG 1.4.10 asks for pages without horizontal scrolling.
NARROW = 320


@dataclass(frozen=True)
class View:
    """Settings of a reader's browser. The height is that of a common window of the width."""

    theme: str = "light"
    width: int = DESKTOP
    reduced_motion: bool = False
    forced_colors: bool = False
    javascript: bool = True
    #: The reader's; a `Window` has one of its own, UTC.
    timezone: str = "UTC"

    @property
    def height(self) -> int:
        return 800 if self.width > TABLET else 844

    def __str__(self) -> str:
        special = {
            "reduced-motion": self.reduced_motion,
            "forced-colors": self.forced_colors,
            "no-javascript": not self.javascript,
        }
        return "-".join([self.theme, str(self.width), *(name for name, on in special.items() if on)])


@dataclass
class Visit:
    """A page in a view, with the errors since it was opened. `expected` is the status of a response that is no error."""

    page: Page
    view: View
    expected: int = 200
    status: int | None = None
    errors: list[str] = field(default_factory=list)

    @contextmanager
    def _watched(self) -> Iterator["Visit"]:
        handlers: dict[Any, Callable[..., None]] = {
            "console": self._on_console,
            "pageerror": lambda error: self.errors.append(f"exception: {error}"),
            "requestfailed": self._on_failure,
            "response": self._on_response,
        }
        for event, handler in handlers.items():
            self.page.on(event, handler)
        try:
            yield self
        finally:
            for event, handler in handlers.items():
                self.page.remove_listener(event, handler)

    def _on_console(self, message: ConsoleMessage) -> None:
        # violations of the Content Security Policy are among them; failed requests are reported with their addresses
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.errors.append(f"console {message.type}: {message.text}")

    def _on_failure(self, request: Request) -> None:
        # a page that is left ends its event stream
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"request failed: {request.url}: {request.failure}")

    def _on_response(self, response: Response) -> None:
        if 300 <= response.status < 400 and "location" in response.headers:
            # the answer of the address to which it leads follows
            return
        is_document = response.request.is_navigation_request() and response.frame == self.page.main_frame
        if is_document:
            self.status = response.status
        if response.status != self.expected if is_document else response.status >= 400:
            self.errors.append(f"request failed: {response.url}: {response.status}")


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser without a window."""
    found = chromium()
    environment: dict[str, str | float | bool] = {**os.environ, **found.environment}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found.program, env=environment)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, view: View, url: str, expected: int = 200) -> Iterator[Visit]:
    """A page in a context of its own, after its load event. A status other than `expected` is one of its errors."""
    with closing(_page(browser, view.javascript, view.timezone)) as page, _loaded(page, view, url, expected) as visit:
        yield visit


class Window:
    """Loads pages one after the other in one tab: Chromium needs longer to open a tab than to load a page."""

    def __init__(self, browser: Browser) -> None:
        self._pages = {javascript: _page(browser, javascript) for javascript in (True, False)}

    def close(self) -> None:
        """Close the tab."""
        for page in self._pages.values():
            page.close()

    @contextmanager
    def opened(self, view: View, url: str, expected: int = 200) -> Iterator[Visit]:
        """The same as the function `opened`; one page at a time. It leaves neither the pointer nor stored settings behind."""
        page = self._pages[view.javascript]
        try:
            with _loaded(page, view, url, expected) as visit:
                yield visit
        finally:
            page.mouse.move(0, 0)
            page.evaluate(_FORGET)
            # its event stream would otherwise fail in the next visit, if the server has ended
            page.goto("about:blank")


def _page(browser: Browser, javascript: bool, timezone: str = "UTC") -> Page:
    """A page whose context closes with it."""
    page = browser.new_page(java_script_enabled=javascript, locale="en-GB", timezone_id=timezone)
    page.set_default_timeout(_TIMEOUT_MS)
    return page


@contextmanager
def _loaded(page: Page, view: View, url: str, expected: int) -> Iterator[Visit]:
    page.set_viewport_size({"width": view.width, "height": view.height})
    page.emulate_media(
        color_scheme="dark" if view.theme == "dark" else "light",
        reduced_motion="reduce" if view.reduced_motion else "no-preference",
        forced_colors="active" if view.forced_colors else "none",
    )
    with Visit(page, view, expected)._watched() as visit:
        page.goto(url)
        yield visit
