"""The tables of `grouplake example --history` until a fixed time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from tables_of_run import tables_of_run

from pipelines.examples.history.history import write_history
from pipelines.query.engine import Snapshot

UNTIL = datetime(2026, 3, 4, 14, tzinfo=UTC)


@cache
def shop_tables() -> str:
    """The folder of the tables. Tests only read it."""
    return tables_of_run("shop-history", lambda folder: write_history(folder, UNTIL))


def at(relative_ms: int) -> datetime:
    """A time relative to the end of the history."""
    return UNTIL + timedelta(milliseconds=relative_ms)


def rows(sql: str, as_of: datetime | None = None) -> list[dict[str, Any]]:
    """Rows of a query, by default on the newest batch."""
    snapshot = Snapshot.open(shop_tables())
    found: list[dict[str, Any]] = (snapshot if as_of is None else snapshot.as_of(as_of)).query(sql).to_pylist()
    return found


def status(group: str, as_of: datetime | None = None) -> Mapping[str, Any]:
    """The row of `group_status` of a group, with the rules of all findings."""
    (found,) = rows(f"SELECT * FROM group_status WHERE group_id = '{group}'", as_of)
    return {**found, "rules": {finding["rule"] for finding in found["findings"]}}
