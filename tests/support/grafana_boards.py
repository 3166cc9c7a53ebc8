"""Our Grafana boards as data."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
_LABEL_VALUES = re.compile(r"label_values\((?P<selector>.*), *(?P<label>\w+)\)")


def boards() -> dict[str, dict[str, Any]]:
    """File name → board."""
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def expressions(board: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Title of the panel and expression, of every query."""
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def variables(board: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, selector and label of the variables that are filled by queries."""
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found = _LABEL_VALUES.fullmatch(variable["query"]["query"])
            assert found, variable["query"]
            yield variable["name"], found["selector"], found["label"]
