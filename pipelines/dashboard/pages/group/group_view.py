"""Values that only the HTML of the page of a group needs: its chart, the summary of the chart and the tabs."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import UNKNOWN, age, count, plural
from pipelines.dashboard.history.default_span import offered_spans
from pipelines.dashboard.pages.group.group import is_affected
from pipelines.dashboard.pages.group.group_chart import group_chart
from pipelines.dashboard.pages.group.group_tabs import TABS, read_command
from pipelines.dashboard.pages.group.lag_map import lag_map, map_summary, shade_words
from pipelines.dashboard.pages.group.ownership import OwnershipChart
from pipelines.dashboard.state.moment import Moment

#: Events that the page lists; its JSON has all.
_MOST_EVENTS = 30
_MOST_FACTS = 10
_MOST_RANGES = 20
_MOST_COMMANDS = 3
#: A row of this height has room for a name; lower ones have it at this distance.
_NAMED_HEIGHT, _NAMED_DISTANCE = 12, 4


def group_view(model: Mapping[str, Any], _: Moment) -> Mapping[str, Any]:
    """Names for the template group.html."""
    known = [row for row in model["commits"] if row["commits_per_second"] is not None]
    chart = group_chart(model)
    affected = {(row["topic"], row["partition"]) for row in model["offsets"] if is_affected(row)}
    return {
        "chart": chart,
        "affected": affected,
        "read_commands": _read_commands(model["offsets"]),
        "named": named_rows(chart.ownership, affected),
        "summary": chart_summary(model),
        "lag_map": lag_map(model, affected) if model["partition_lag"]["rows"] else None,
        "map_summary": map_summary(model) if model["partition_lag"]["rows"] else "",
        "map_shades": shade_words(),
        "sampled": [row for row in model["lag_history"] if row["lag"] is not None or row["lag_seconds"] is not None],
        "committing": known if any(row["commits_per_second"] for row in known) else [],
        "spans": offered_spans(model["span"]["text"]),
        "tabs": TABS,
        "tab_label": next(label for name, label, _ in TABS if name == model["tab"]),
        "most_events": _MOST_EVENTS,
        "most_facts": _MOST_FACTS,
        "partitions": partition_ranges,
    }


def _read_commands(offsets: Sequence[Mapping[str, Any]]) -> list[str]:
    """Commands that print the next records of the first affected partitions."""
    stuck = [row for row in offsets if is_affected(row) and row["lag"] and row["group_offset"] is not None]
    return [read_command(row["topic"], row["partition"], row["group_offset"]) for row in stuck[:_MOST_COMMANDS]]


def named_rows(chart: OwnershipChart, affected: Set[tuple[str, int]]) -> set[int]:
    """Numbers of the rows that have a name: all if there is room, else those of affected partitions and some between them."""
    if chart.row_height >= _NAMED_HEIGHT:
        return set(range(len(chart.rows)))
    found = {number for number, row in enumerate(chart.rows) if (row.topic, row.partition) in affected}
    others = (number for number in range(0, len(chart.rows), _NAMED_DISTANCE))
    return found | {number for number in others if not found & {number - 1, number, number + 1}}


def chart_summary(model: Mapping[str, Any]) -> str:
    """One sentence with the numbers of the chart."""
    points = [row for row in model["lag_history"] if row["lag"] is not None]
    text = f"Last {model['span']['text']}: "
    if points:
        highest = max(points, key=lambda row: row["lag"])
        text += f"lag {count(highest['lag'])} at most, {count(points[-1]['lag'])} at the end"
        ages = [row for row in points if row["lag_seconds"] is not None]
        text += f", greatest age {age(max(ages, key=lambda row: row['lag_seconds']))}" if ages else ""
    else:
        text += "no samples of lag"
    rebalances, resets = len(model["rebalances"]), len(model["resets"])
    at_least = "at least " if any(row["is_polled"] for row in model["rebalances"]) else ""
    return f"{text}; {at_least}{plural(rebalances, 'rebalance')}" + (f", {plural(resets, 'reset')}" if resets else "") + "."


def partition_ranges(assigned: Sequence[Mapping[str, Any]] | None) -> str:
    """Assigned partitions, such as `orders 0–3, 7`."""
    if assigned is None:
        return UNKNOWN
    return (
        "; ".join(f"{visible(each['topic'] or each['topic_id'], 60)} {_ranges(each['partitions'])}" for each in assigned)
        or "none"
    )


def _ranges(partitions: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for partition in sorted(partitions):
        if runs and partition == runs[-1][1] + 1:
            runs[-1][1] = partition
        else:
            runs.append([partition, partition])
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in runs]
    return ", ".join(texts[:_MOST_RANGES]) + (f" and {len(texts) - _MOST_RANGES} more" if len(texts) > _MOST_RANGES else "")
