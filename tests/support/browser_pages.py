"""Pages in one headless Chromium, as different readers see them, with a record of their errors.

with launched() as browser, opened(browser, view("dark", 390), url) as visit:
    assert visit.errors == []
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from chromium import chromium
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, sync_playwright

_TIMEOUT_MS = 30_000
PHONE, TABLET, DESKTOP = 390, 768, 1280
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

    def _watch(self) -> "Visit":
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        self.page.on("requestfailed", self._on_failure)
        self.page.on("response", self._on_response)
        return self

    def _on_console(self, message: ConsoleMessage) -> None:
        # violations of the Content Security Policy are among them; failed requests are reported with their addresses
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.errors.append(f"console {message.type}: {message.text}")

    def _on_failure(self, request: Request) -> None:
        # a page that is left ends its event stream
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"request failed: {request.url}: {request.failure}")

    def _on_response(self, response: Response) -> None:
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
    context = browser.new_context(
        viewport={"width": view.width, "height": view.height},
        color_scheme="dark" if view.theme == "dark" else "light",
        reduced_motion="reduce" if view.reduced_motion else "no-preference",
        forced_colors="active" if view.forced_colors else "none",
        java_script_enabled=view.javascript,
        locale="en-GB",
        timezone_id="UTC",
    )
    try:
        context.set_default_timeout(_TIMEOUT_MS)
        visit = Visit(context.new_page(), view, expected)._watch()
        visit.page.goto(url)
        yield visit
    finally:
        context.close()
