"""Marks of the slider of a group: its rebalances, resets and alerts since the first batch."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pipelines.dashboard.formatting.quantities import plural
from pipelines.dashboard.history.group_history import GroupQueries
from pipelines.dashboard.history.span import Span
from pipelines.dashboard.pages.group.group import is_known
from pipelines.dashboard.pages.group.incident_events import alert_events
from pipelines.dashboard.pages.group.steady_syncs import without_sync_rows
from pipelines.dashboard.state.moment import Moment

Row = dict[str, Any]

#: Places of marks on the slider: events of one place are one mark.
PLACES = 240
#: Kind of event → its word, the most serious first.
_KINDS = {"reset": "reset", "alert": "transition of an alert", "rebalance": "rebalance"}
_PLURALS = {"alert": "transitions of alerts"}
_FIRST_BATCH = "SELECT min(finished_at) AS at FROM batches"


def time_marks_page(moment: Moment, group: str) -> Row:
    """The model: `marks` from the first batch to the moment.

    An unknown group has no marks, nor has one that the viewer may not see: the page of an earlier time may be of a group that
    no longer exists.
    """
    if not is_known(moment, group):
        return {"group_id": group, "marks": []}
    first: datetime = moment.query(_FIRST_BATCH).to_pylist()[0]["at"]
    span = Span(min(first, moment.at), moment.at, "")
    history = GroupQueries(moment, group, span)
    resets, _ = without_sync_rows(history.resets())
    events = [(row["recorded_at"], "rebalance") for row in history.rebalances()]
    # positions that jump together are one reset
    events += [(at, "reset") for at in {row["reset_at"] for row in resets}]
    events += [(row["at"], "alert") for row in alert_events(moment, group, span)]
    return {"group_id": group, "marks": marks(events, span)}


def marks(events: Iterable[tuple[datetime, str]], span: Span) -> list[Row]:
    """Rows in the order of time with `at`, that of the first event, the most serious `kind`, and `words`."""
    places: dict[int, list[tuple[datetime, str]]] = {}
    for at, kind in sorted(events):
        share = (at - span.start).total_seconds() / max(1.0, span.seconds)
        places.setdefault(min(PLACES - 1, max(0, int(share * PLACES))), []).append((at, kind))
    found = []
    for place in sorted(places):
        counts = Counter(kind for _, kind in places[place])
        kinds = [kind for kind in _KINDS if counts[kind]]
        found.append({"at": places[place][0][0], "kind": kinds[0], "words": _words(counts, kinds)})
    return found


def _words(counts: Mapping[str, int], kinds: Iterable[str]) -> str:
    return ", ".join(plural(counts[kind], _KINDS[kind], _PLURALS.get(kind)) for kind in kinds)
