"""The tables of docs/sql.md: a day of a shop."""

import runpy
from functools import cache
from pathlib import Path

from tables_of_run import tables_of_run

_SCENARIO = Path(__file__).parents[2] / "docs" / "sql_scenario.py"


@cache
def day_tables() -> str:
    """The folder of the tables. Tests only read it."""
    return tables_of_run("shop-day", runpy.run_path(str(_SCENARIO))["write_tables"])
