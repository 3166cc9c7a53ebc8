"""A walk over every page that links lead to, in both themes on a desktop and on a phone."""

import re
from collections import deque
from collections.abc import Iterator
from urllib.parse import urlsplit

from browser_pages import DESKTOP, PHONE, View, Window
from page_rules import findings

_VIEWS = tuple(View(theme, width) for theme in ("light", "dark") for width in (DESKTOP, PHONE))
#: Parameters whose values are pages of their own; others are orders, filters, spans and times.
_PAGES_IN_QUERIES = re.compile(r"tab=\w+")


def walked(window: Window, url: str, most: int) -> Iterator[tuple[str, list[str]]]:
    """Every page from `url` on, up to `most`, with what breaks the rules. Pages of a cluster only, each once per tab."""
    waiting, seen = deque([url]), {url}
    while waiting:
        page = waiting.popleft()
        found: list[str] = []
        for view in _VIEWS:
            with window.opened(view, page) as visit:
                found += [f"{finding} ({view})" for finding in findings(visit)]
                links = visit.page.eval_on_selector_all("a[href]", "links => links.map((each) => each.href)")
        yield page, found
        for link in sorted({address for each in links if (address := _page(each, url))} - seen):
            if len(seen) < most:
                seen.add(link)
                waiting.append(link)


def _page(link: str, origin: str) -> str | None:
    """The address of a page of a cluster, without its time, order and filters; None for other links."""
    parts, first = urlsplit(link), urlsplit(origin)
    if parts.netloc != first.netloc or not parts.path.startswith("/c/") or parts.path.endswith((".json", ".csv")):
        return None
    tab = _PAGES_IN_QUERIES.search(parts.query)
    return f"{parts.scheme}://{parts.netloc}{parts.path}{f'?{tab[0]}' if tab else ''}"
