"""Statuses of groups from data that is older than expected: unknown, with the reason, whatever they were."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from coordinator_core.health import Status

#: Rule of such a status.
RULE = "unknown"

_DECISION = {"status": str(Status.UNKNOWN), "rule": RULE}
#: Columns about the finding that decided; this one is about the whole group.
_WHOLE_GROUP = dict.fromkeys(("topic", "partition", "window_rows", "window_seconds"))
_FINDING = {**_DECISION, **_WHOLE_GROUP, **dict.fromkeys(("from_offset", "to_offset", "by"))}


def unknown_status(row: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """A row of `group_status` with the status UNKNOWN for a reason."""
    found = {"findings": [{**_FINDING, "detail": reason}], **({"facts": []} if "facts" in row else {})}
    return {**row, **_DECISION, **_WHOLE_GROUP, "detail": reason, **found}


def unknown_statuses(rows: pa.Table, reason: str) -> pa.Table:
    """Rows of any table with the status UNKNOWN for a reason, in those of the columns of a status that it has."""
    values = {**_DECISION, "detail": reason, "findings": [{**_FINDING, "detail": reason}], "facts": []}
    for number, field in enumerate(rows.schema):
        if field.name in values:
            rows = rows.set_column(number, field, pa.array([values[field.name]] * rows.num_rows, field.type))
    return rows
