"""One word, one thing: a class name stands for one class in the whole product."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("coordinator_core", "grouplake", "pipelines")
#: The wire defines them in the form of its library, under the names of the protocol.
_OF_THE_LIBRARY = {"ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse"}


def test_a_class_name_stands_for_one_class() -> None:
    found = defaultdict[str, list[str]](list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            classes = [node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
            for name in classes:
                found[name].append(str(path.relative_to(ROOT)))
    assert len(found) > 1_000, "the product has more classes than that"
    assert {name: paths for name, paths in found.items() if len(paths) > 1 and name not in _OF_THE_LIBRARY} == {}


@pytest.mark.parametrize("name", ["thinning", "leaves", "words", "utils", "helpers"])
def test_files_have_no_names_that_were_given_up(name: str) -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert [path for path in files if name in path.stem.split("_")] == []
