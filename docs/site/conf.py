"""Sphinx's configuration of the documentation site (`make site`): the pages of docs/, as they are in the repository.

The index in docs/README.md is the navigation: a page stands in the part of its first reader.
"""

import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
#: First reader of a page in docs/README.md → title of its part.
PARTS = {
    "all": "Start",
    "authors of queries": "Queries",
    "operators": "Operation",
    "operators of the coordinator": "Coordinator",
    "operators of several coordinators": "Coordinator",
    "developers": "Development",
}
#: Pages whose folder is a part of its own below them.
FOLDERS = ("docs/adr/README", "docs/moving/README")
#: Pictures, which `<img>` and `<picture>` name by their place in the repository.
PICTURES = "docs/images"

project = "Grouplake"
author = "The Grouplake authors"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/adr/*.md",
    "docs/moving/*.md",
    "schemas/records/README.md",
    "tests/conformance/README.md",
]
# pages that only others name, such as that of the conformance tests
suppress_warnings = ["toc.not_included"]
html_theme = "furo"
html_title = project
html_show_sphinx = False


def navigation() -> dict[str, list[str]]:
    """Part → pages, in the order of PARTS and of docs/README.md."""
    parts: dict[str, list[str]] = {part: [] for part in PARTS.values()}
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for pages, reader in re.findall(r"^\| (\[.*?\)) \| (.*?) \|", index, re.MULTILINE):
        for target in re.findall(r"\]\((.*?)\)", pages):
            page = (ROOT / "docs" / target).resolve().relative_to(ROOT).with_suffix("").as_posix()
            if page != root_doc:
                parts[PARTS[reader.split(",")[0]]].append(page)
    return parts


def add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add what the repository's own pages do not need: the tree of the site."""
    if page == root_doc:
        for part, pages in navigation().items():
            source[0] += "\n".join(["\n", "```{toctree}", ":hidden:", f":caption: {part}", "", *pages, "```"])
    elif page in FOLDERS:
        source[0] += "\n\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def unlink_folders(app: Sphinx, document: nodes.document) -> None:
    """Leave the text of links to folders of the repository, which are no pages of the site."""
    page = Path(app.env.doc2path(app.env.docname))
    for link in list(document.findall(pending_xref)):
        if link["reftype"] == "myst" and (page.parent / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def add_files(app: Sphinx, failure: Exception | None) -> None:
    """Add the pictures, and a first page under the name that servers look for."""
    if failure is None:
        site = Path(app.outdir)
        shutil.copytree(ROOT / PICTURES, site / PICTURES, dirs_exist_ok=True)
        shutil.copyfile(site / f"{root_doc}.html", site / "index.html")


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", unlink_folders)
    app.connect("build-finished", add_files)
