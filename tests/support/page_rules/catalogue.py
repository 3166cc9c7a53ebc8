"""Every rule, and the views in which it applies."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from axe_playwright_python.sync_playwright import Axe
from browser_pages import NARROW, PHONE, View, Visit
from playwright.sync_api import Page

from page_rules.keyboard import keyboard
from page_rules.script import evaluate, found

_AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
_AXE_IMPACTS = ("serious", "critical")
_TARGET_PX = 24

_WIDE, _PHONE, _NARROW = View(), View(width=PHONE), View(width=NARROW)
_DARK, _DARK_PHONE = View("dark"), View("dark", PHONE)
_STILL = View(reduced_motion=True)
_FORCED = View(forced_colors=True)
_PLAIN = View(javascript=False)
#: Every view in which a page is opened.
VIEWS = (_WIDE, _PHONE, _NARROW, _DARK, _DARK_PHONE, _STILL, _FORCED, _PLAIN)


@dataclass(frozen=True)
class Rule:
    """A rule: the function that finds where a page breaks it, and the views in which it applies."""

    check: Callable[[Page], list[str]]
    views: Sequence[View]


def axe(page: Page) -> list[str]:
    """Violations that axe finds."""
    options = {"runOnly": {"type": "tag", "values": _AXE_TAGS}, "resultTypes": ["violations"]}
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in Axe().run(page, options=options).response["violations"]
        if violation["impact"] in _AXE_IMPACTS
        for node in violation["nodes"]
    ]


def _scripted(name: str, function: str) -> Callable[[Page], list[str]]:
    return lambda page: found(page, name, function)


RULES = {
    "axe": Rule(axe, (_WIDE, _PHONE, _DARK, _DARK_PHONE)),
    "keyboard": Rule(keyboard, (_WIDE, _PHONE, _DARK, _FORCED)),
    "targets": Rule(lambda page: list(evaluate(page, "layout", "targets", _TARGET_PX)), (_WIDE, _PHONE, _NARROW)),
    "reflow": Rule(_scripted("layout", "reflow"), (_NARROW, _PHONE, _WIDE)),
    "scroll regions": Rule(_scripted("layout", "scrollRegions"), (_NARROW, _PHONE, _WIDE)),
    "text spacing": Rule(_scripted("spacing", "spacing"), (_WIDE, _NARROW)),
    "texts of charts": Rule(_scripted("layout", "chartTexts"), (_WIDE, _PHONE, _NARROW)),
    "hover": Rule(_scripted("words", "hover"), (_WIDE,)),
    "units": Rule(_scripted("words", "units"), (_WIDE, _PHONE)),
    "charts": Rule(_scripted("structure", "charts"), (_WIDE, _PLAIN)),
    "tables": Rule(_scripted("structure", "tables"), (_WIDE, _PLAIN)),
    "outline": Rule(_scripted("structure", "outline"), (_WIDE, _PHONE, _PLAIN)),
    "skip link": Rule(_scripted("structure", "skipLink"), (_WIDE, _PHONE)),
    "motion": Rule(_scripted("motion", "motion"), (_STILL,)),
}


def findings(visit: Visit) -> list[str]:
    """What breaks the rules of the visit's view, each once, and the errors of the page until then."""
    if visit.status != visit.expected:
        return visit.errors
    broken = [f"{name}: {each}" for name, rule in RULES.items() if visit.view in rule.views for each in rule.check(visit.page)]
    return list(dict.fromkeys(visit.errors + broken))


def duplicate_titles(titles: Iterable[str]) -> list[str]:
    """Titles that several pages have."""
    return [f"{number} pages have the title {title!r}" for title, number in Counter(titles).items() if number > 1]
