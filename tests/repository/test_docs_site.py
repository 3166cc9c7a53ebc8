"""`make site`: every page of docs/ is on the site, its links lead somewhere, and a broken one ends the build."""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_pages import ROOT
from patience import LIMIT_SECONDS

pytestmark = pytest.mark.slow

_BROKEN = "\n[a page](no-such-page.md), [a heading](lag.md#no-such-heading)\n"


class Page(HTMLParser):
    """The links, pictures and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, _tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect what an element names."""
        named = dict(attributes)
        self.targets += [value for name in ("href", "src", "srcset") if (value := named.get(name))]
        self.anchors |= {value for name in ("id", "name") if (value := named.get(name))}


def sources(copy: Path) -> Path:
    """A copy of what the site is made of."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    return copy


def test_the_site(tmp_path: Path) -> None:
    copy, site = sources(tmp_path / "copy"), tmp_path / "site"
    page = copy / "docs" / "topics.md"
    page.write_text(page.read_text(encoding="utf-8") + _BROKEN, encoding="utf-8")
    program = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    found = subprocess.run(
        [*program, "--conf-dir", "docs/site", ".", str(site)], cwd=copy, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert found.returncode == 1
    warnings = re.findall(r"topics\.md:\d+: WARNING: (.*)", found.stderr)
    assert len(warnings) == len([line for line in found.stderr.splitlines() if "WARNING" in line]) == 2, found.stderr
    assert "no-such-page.md" in warnings[0]
    assert "no-such-heading" in warnings[1]

    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    expected = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert expected <= {path.relative_to(site) for path in pages}
    for path, each in pages.items():
        for target in each.targets:
            url = urlsplit(target)
            if url.scheme or url.netloc or "no-such-" in target:
                continue
            named = (path.parent / unquote(url.path)).resolve() if url.path else path
            assert named.exists(), (path, target)
            if named in pages:
                assert unquote(url.fragment) in pages[named].anchors, (path, target)
    index = (site / "searchindex.js").read_text(encoding="utf-8").removeprefix("Search.setIndex(").removesuffix(")")
    assert "docs/record-formats" in json.loads(index)["docnames"]
    first = (site / "index.html").read_text(encoding="utf-8")
    captions = re.findall(r'class="caption-text">(.*?)<', first)
    assert captions == ["Start", "Queries", "Operation", "Coordinator", "Development"]
