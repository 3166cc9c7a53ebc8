"""Groups with defects, as pages of topics and clients name them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pipelines.dashboard.formatting.reasons import reasons
from pipelines.dashboard.formatting.statuses import status_words

Row = dict[str, Any]

#: Groups that a page names above everything else.
MOST_NAMED = 3


def reasons_about(status: Mapping[str, Any], topics: Sequence[str | None], at: datetime) -> list[Row]:
    """The reasons of a row of `group_status` that are about one of the topics, or about the group as a whole."""
    findings = status.get("findings") or []
    return reasons([each for each in findings if each["topic"] in (None, *topics)], at)


def defects(groups: Sequence[Row]) -> list[Row]:
    """Rows with `group_id` and `reasons` that have a reason, the most severe one first."""
    found = [row for row in groups if row["reasons"]]
    return sorted(found, key=lambda row: status_words(row["reasons"][0]["status"]).rank)


def defect_names(groups: Sequence[Row]) -> Row:
    """Names for the template group_defects.html."""
    found = defects(groups)
    return {"defects": found[:MOST_NAMED], "more_defects": len(found) - MOST_NAMED}
