"""The tables whose pages are tested and pictured. All of their times are fixed."""

import runpy
from pathlib import Path

_SCENARIO = Path(__file__).parents[2] / "docs" / "sql_scenario.py"
CLUSTER = "shop"


def write_page_tables(folder: Path) -> str:
    """Write the tables below `folder` and return the value of `--tables`."""
    root = folder / CLUSTER
    runpy.run_path(str(_SCENARIO))["write_tables"](str(root))
    return f"{CLUSTER}={root}"
