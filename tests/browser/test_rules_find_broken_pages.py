"""Every rule accepts one good page and finds what a change breaks in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_pages import NARROW, View, Window
from page_rules import RULES, VIEWS, duplicate_titles, findings
from page_server import page_server

pytestmark = [pytest.mark.browser, pytest.mark.long]

EXAMPLE = {f"/{file.name}": file.read_text(encoding="utf-8") for file in (Path(__file__).parent / "example").iterdir()}
PAGE, STYLE, SCRIPT = "/page.html", "/page.css", "/page.js"
TRAP = "document.querySelector('#filter').addEventListener('keydown', (event) => event.preventDefault()); document."

#: A pane in front of everything.
CURTAIN = "main::before { content: ''; position: fixed; inset: 0; z-index: 9; }"
ROWS = EXAMPLE[PAGE][EXAMPLE[PAGE].index("<tbody><tr><td>12:00") : EXAMPLE[PAGE].index("</table>\n</details>")]

#: Rule, file, text in it, its replacement, and a part of the finding.
BROKEN = [
    ("axe", STYLE, "--text: #16202c", "--text: #b0b4b8", "color-contrast"),
    ("axe", PAGE, '<label for="filter">Filter</label>', "Filter", "label"),
    ("keyboard", STYLE, "outline: 2px solid", "outline: 0 none", "no outline of 2 px"),
    ("keyboard", STYLE, "2px solid var(--link)", "2px solid #ddd", "has a contrast of 1.4, less than 3"),
    ("keyboard", STYLE, ".skip:focus { left: 8px;", ".skip:focus { left: -990px;", "outside of the window"),
    ("keyboard", STYLE, ".scroll {", f"{CURTAIN} .scroll {{", "is covered"),
    ("keyboard", PAGE, "<button>Apply</button>", '<span role="button">Apply</span>', 'Tab does not reach <span> "Apply"'),
    ("keyboard", PAGE, "<button>Apply</button>", '<button tabindex="-1">Apply</button>', 'Tab does not reach <button> "Apply"'),
    ("keyboard", PAGE, "<button>Apply</button>", '<button tabindex="1">Apply</button>', "has a tabindex of 1"),
    ("keyboard", SCRIPT, "document.", TRAP, "Tab returns to <input#filter>"),
    ("targets", STYLE, ".item, summary", "summary", "less than 24 × 24"),
    ("targets", STYLE, ".check { display: inline-block; min-height: 28px; }", "", "<input#only>"),
    ("reflow", STYLE, ".scroll { overflow-x: auto; }", "", "the page is 5"),
    ("reflow", STYLE, ".scroll { overflow-x: auto; }", "body { overflow-x: hidden; }", "ends at 5"),
    ("scroll regions", PAGE, ' tabindex="0"', "", "cannot have the focus"),
    ("scroll regions", PAGE, ' aria-label="Partitions" tab', " tab", "no label"),
    ("scroll regions", PAGE, 'role="region" ', "", "no role"),
    ("texts of charts", PAGE, 'x="255"', 'x="60"', '"12:00" overlaps "14:00"'),
    ("texts of charts", PAGE, 'x="255"', 'x="290"', '"14:00" is cut off'),
    ("texts of charts", PAGE, 'viewBox="0 0 300 60"', 'viewBox="0 0 500 100"', "has 7.2 px, less than 10 px"),
    ("hover", PAGE, "UTC</time>", "</time>", 'title="2026-03-02 14:00 UTC"'),
    ("hover", PAGE, "14:00: 48,201 records</title>", "14:00: 48,777 records</title>", "48,777"),
    ("hover", PAGE, 'id="age"', 'id="age" title="3 to 5 min"', "3 to 5 min"),
    ("hover", STYLE, "figure {", "#age { opacity: 0; } tr:hover #age { opacity: 1; } figure {", "opacity of tr:hover #age"),
    ("text spacing", STYLE, "figure {", "h2 { height: 1.2em; line-height: 1.2; overflow: hidden; } figure {", "<h2#lag-title>"),
    ("text spacing", STYLE, "figure {", "h1 { width: max-content; padding-right: 1175px; } figure {", "px wide with more space"),
    ("units", PAGE, "48,201 records</span>", "48,201</span>", '<span.number> "48,201" has no unit'),
    (
        "units",
        PAGE,
        'aria-sort="descending" data-unit="records"',
        'aria-sort="descending"',
        'the column <th#lag> "Lag',
    ),
    ("units", PAGE, '?sort=lag">Lag in records', '?sort=lag">Lag', 'the column <th#lag> "Lag'),
    ("units", PAGE, "4 min", "4", 'the column <th> "Age" of <table#partitions>'),
    ("units", PAGE, 'id="records" class="number"', 'id="records"', "the column <th#lag>"),
    ("units", STYLE, "tabular-nums", "normal", "no tabular figures"),
    ("units", STYLE, "text-align: right", "text-align: left", "not aligned right"),
    ("charts", PAGE, "<figcaption>Lag by hour</figcaption>", "", "no figcaption"),
    ("charts", PAGE, 'role="img"', "", "no role"),
    ("charts", PAGE, "Lag rose from 0 to 48,201 records between 12:00 and 14:00.", "Lag rose.", "has no number"),
    ("charts", PAGE, ROWS, "", "no table"),
    ("charts", PAGE, 'id="spark" aria-hidden="true"', 'id="spark"', "<svg#spark> is a chart outside of a figure"),
    ("charts", PAGE, '[[30, "1 rebalance"]]', "[]", "<svg> is a chart outside of a figure"),
    ("tables", PAGE, "<caption>Partitions, greatest lag first</caption>", "", "no caption"),
    ("tables", PAGE, '<th scope="row">', "<th>", "no scope"),
    ("tables", PAGE, ' aria-sort="descending"', "", "0 of its columns have aria-sort"),
    ("outline", PAGE, ' lang="en"', "", "no lang"),
    ("outline", PAGE, "<title>billing · Grouplake</title>", "<title></title>", "no title"),
    ("outline", PAGE, "<h1>billing</h1>", "<p>billing</p>", "0 h1"),
    ("outline", PAGE, '<h2 id="lag-title">Lag</h2>', '<h3 id="lag-title">Lag</h3>', "follows an h1"),
    ("skip link", PAGE, '<a class="skip" href="#content">Skip to the content</a>', "", "no skip link"),
    ("skip link", PAGE, 'href="#content"', 'href="#contents"', "which the page does not have"),
    ("motion", STYLE, "@media (prefers-reduced-motion: reduce) { a { transition: none; } }", "", "has a transition of 0.12s"),
    ("motion", STYLE, "figure { margin: 0; }", "html { scroll-behavior: smooth; }", "scrolls smoothly"),
]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """Files of the server, which tests change."""
    return dict(EXAMPLE)


@pytest.fixture(scope="module")
def address(files: dict[str, str]) -> Iterator[str]:
    with page_server(files) as running:
        yield running


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_a_good_page_keeps_every_rule(window: Window, address: str, files: dict[str, str], view: View) -> None:
    files.update(EXAMPLE)
    with window.opened(view, address + PAGE) as visit:
        assert findings(visit) == []


@pytest.mark.parametrize(("rule", "file", "text", "replacement", "finding"), BROKEN)
def test_a_broken_page(
    window: Window, address: str, files: dict[str, str], rule: str, file: str, text: str, replacement: str, finding: str
) -> None:
    assert EXAMPLE[file].count(text) == 1
    files.update({**EXAMPLE, file: EXAMPLE[file].replace(text, replacement)})
    with window.opened(RULES[rule].views[0], address + PAGE) as visit:
        found = RULES[rule].check(visit.page)
    assert [each for each in found if finding in each], found


@pytest.mark.parametrize(
    ("text", "replacement"),
    [
        ('<svg id="drawing"', '<svg id="drawing" aria-details="partitions"'),
        ('<figure id="chart">', '<figure id="chart" aria-details="partitions">'),
        ('<main id="content">', '<main id="content"><figure><table hidden><tr><td>1 s</td></tr></table>'),
    ],
)
def test_places_of_the_table_of_a_chart(window: Window, address: str, files: dict[str, str], text: str, replacement: str) -> None:
    assert EXAMPLE[PAGE].count(text) == 1
    files.update({**EXAMPLE, PAGE: EXAMPLE[PAGE].replace(ROWS, "").replace(text, replacement)})
    with window.opened(View(), address + PAGE) as visit:
        assert RULES["charts"].check(visit.page) == []


def test_every_rule_has_a_broken_page() -> None:
    assert {rule for rule, *_ in BROKEN} == set(RULES)


@pytest.mark.parametrize(
    ("file", "text", "replacement", "error"),
    [
        (PAGE, "<h1>", '<h1 style="color: red">', "Content Security Policy"),
        (PAGE, "</body>", "<script>document.title = 'x'</script></body>", "Content Security Policy"),
        (PAGE, "/page.js", "/missing.js", "/missing.js: 404"),
        (SCRIPT, "document.", "missing.", "missing is not defined"),
        (SCRIPT, "document.", "console.error('wrong'); document.", "console error: wrong"),
        (PAGE, "<h1>", '<h1><img alt="" src="http://127.0.0.1:9/x.png">', "Content Security Policy"),
    ],
)
def test_errors_of_a_page(
    window: Window, address: str, files: dict[str, str], file: str, text: str, replacement: str, error: str
) -> None:
    files.update({**EXAMPLE, file: EXAMPLE[file].replace(text, replacement)})
    with window.opened(View(), address + PAGE) as visit:
        assert [each for each in visit.errors if error in each], visit.errors


def test_a_page_without_javascript_runs_none(window: Window, address: str, files: dict[str, str]) -> None:
    files.update(EXAMPLE)
    read = "document.documentElement.dataset.live || 'no'"
    for view, live in ((View(), "yes"), (View(javascript=False), "no")):
        with window.opened(view, address + PAGE) as visit:
            assert visit.page.evaluate(read) == live


def test_settings_of_a_view_reach_the_page(window: Window, address: str, files: dict[str, str]) -> None:
    files.update(EXAMPLE)
    wanted = {
        View("dark"): "(prefers-color-scheme: dark)",
        View(width=NARROW): "(max-width: 320px)",
        View(reduced_motion=True): "(prefers-reduced-motion: reduce)",
        View(forced_colors=True): "(forced-colors: active)",
    }
    for view in (View(), *wanted):
        with window.opened(view, address + PAGE) as visit:
            holds = [query for query in wanted.values() if visit.page.evaluate("query => matchMedia(query).matches", query)]
        assert holds == ([wanted[view]] if view in wanted else [])


def test_titles_of_several_pages() -> None:
    assert duplicate_titles(["Groups", "billing", "Groups"]) == ["2 pages have the title 'Groups'"]


def test_the_status_of_a_page(window: Window, address: str, files: dict[str, str]) -> None:
    files.update(EXAMPLE)
    with window.opened(View(), f"{address}/missing.html") as visit:
        assert findings(visit) == [f"request failed: {address}/missing.html: 404"]
    with window.opened(View(), f"{address}/missing.html", 404) as visit:
        found = findings(visit)
        assert "outline: the page has no title" in found
        assert not [each for each in found if "failed" in each]
