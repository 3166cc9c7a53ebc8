"""The page of one topic: ages of its groups by partition, growth of the log, leaders and replicas, and its topic ids."""

from collections.abc import Collection, Sequence
from typing import Any

from coordinator_core.health import HotPartition, LagReason
from pipelines.dashboard.history.default_span import span_of_samples
from pipelines.dashboard.history.topic_rows import group_topics
from pipelines.dashboard.pages.parts.greatest_age import greatest_age
from pipelines.dashboard.pages.parts.group_defects import reasons_about
from pipelines.dashboard.pages.parts.page import NoSuchPage, Query
from pipelines.dashboard.pages.topic.matrix import MOST_GROUPS, MOST_PARTITIONS
from pipelines.dashboard.pages.topic.topic_history import TopicQueries, growth_series, partition_logs
from pipelines.dashboard.state.moment import Moment

Row = dict[str, Any]

#: Groups that the page lists; the list of groups can be filtered by topic.
MOST_LISTED = 200
#: Partitions that the page lists.
MOST_PARTITION_ROWS = 500
_AGE = ("lag_seconds", "lag_seconds_high")
_AT_END = dict.fromkeys(_AGE, 0.0)


def topic_page(moment: Moment, topic: str, query: Query) -> Row:
    """The model of the page.

    Raises:
        NoSuchPage: the tables do not have the topic at this time, or no group reads it that the viewer may see.
        UsageError: an invalid span.
    """
    span = span_of_samples(moment, query.get("span"))
    queries = TopicQueries(moment, topic, span)
    sums, incarnations = group_topics(moment, topic).to_pylist(), queries.incarnations()
    samples = queries.logs()
    # log ends and ids of a topic have no group: only a group that reads the topic shows it to a limited role
    if not sums and (moment.is_limited or not (incarnations or samples)):
        raise NoSuchPage(f"no topic {topic!r} at {moment.at:%Y-%m-%d %H:%M:%S} UTC")
    cells, logs, replicas = queries.cells(), partition_logs(samples, span), queries.replicas()
    groups = _groups(moment, topic, sums)
    partitions = _partitions(cells, logs, replicas, hot := queries.hot())
    return {
        "topic": topic,
        "figures": _figures(groups, partitions),
        "span": {"start": span.start, "end": span.end, "text": span.text},
        "hot": [_hot_row(number, hot[number]) for number in sorted(hot)],
        "growth": growth_series(samples, span) if samples else [],
        "groups": groups[:MOST_LISTED],
        "groups_found": len(groups),
        "partitions": partitions[:MOST_PARTITION_ROWS],
        "matrix": _matrix(groups, partitions, cells, is_past=not moment.is_newest),
        "incarnations": incarnations,
    }


def _groups(moment: Moment, topic: str, sums: list[Row]) -> list[Row]:
    """Groups that read the topic, with their status; the greatest age first."""
    found = sorted(sums, key=lambda row: (-(row["lag_seconds"] or 0), -(row["lag"] or 0), row["group_id"]))
    # at a past time each status is computed from the histories
    judged = found[: MOST_LISTED if moment.is_newest else MOST_GROUPS]
    statuses = moment.statuses([row["group_id"] for row in judged])
    rows = []
    for row in found:
        status = statuses.get(row["group_id"], {})
        rows.append(
            {
                **{name: value for name, value in row.items() if name != "topic"},
                "status": status.get("status"),
                "reasons": reasons_about(status, [topic], moment.at),
            }
        )
    return rows


def _hot_row(partition: int, found: HotPartition) -> Row:
    """A hot partition, with the records of the window in which it was compared."""
    return {
        "partition": partition,
        "records_per_second": found.rate,
        "records": found.written,
        "records_of_topic": found.of_topic,
        "compared_partitions": found.partitions,
        "window_seconds": found.window_ms / 1000,
    }


def _partitions(cells: Sequence[Row], logs: dict[int, Row], replicas: dict[int, Row], hot: Collection[int] = ()) -> list[Row]:
    """One row per partition: those without a leader first, then the greatest age."""
    oldest: dict[int, Row] = {}
    for cell in cells:
        best = oldest.get(cell["partition"])
        if best is None or (cell["lag_seconds"] or 0) > (best["lag_seconds"] or 0):
            oldest[cell["partition"]] = cell
    rows = []
    for partition in sorted({*logs, *replicas, *oldest}):
        log, at, old = logs.get(partition, {}), replicas.get(partition), oldest.get(partition, {})
        missing = None if at is None else sorted(set(at["replicas"]) - set(at["in_sync_replicas"]))
        rows.append(
            {
                "partition": partition,
                "log_start": log.get("log_start"),
                "log_end": log.get("log_end"),
                "reason": log.get("reason"),
                "records_per_second": log.get("records_per_second"),
                "is_hot": partition in hot,
                "leader": at["leader"] if at else None,
                "has_replicas": at is not None,
                "replicas": at["replicas"] if at else [],
                "out_of_sync": missing or [],
                "lag_seconds": old.get("lag_seconds"),
                "lag_seconds_high": old.get("lag_seconds_high"),
                "group_id": old.get("group_id") if old.get("lag_seconds") else None,
            }
        )
    return sorted(
        rows,
        key=lambda row: (
            not (row["has_replicas"] and row["leader"] is None),
            not row["out_of_sync"],
            -(row["lag_seconds"] or 0),
            row["partition"],
        ),
    )


def _figures(groups: Sequence[Row], partitions: Sequence[Row]) -> Row:
    """Sums and extremes over groups and partitions; None where none is known."""
    lags = [row["lag"] for row in groups if row["lag"] is not None]
    rates = [row["records_per_second"] for row in partitions if row["records_per_second"] is not None]
    sizes = [row["log_end"] - row["log_start"] for row in partitions if row["log_end"] is not None]
    missing = sum(row["reason"] == LagReason.UNKNOWN_PARTITION for row in partitions)
    return {
        "partitions": max(len(partitions), max((row["partitions"] for row in groups), default=0)) - missing,
        "groups": len(groups),
        "lag": sum(lags) if lags else None,
        "unknown_partitions": sum(row["unknown_partitions"] for row in groups),
        **greatest_age(groups, "group_id"),
        "records_per_second": sum(rates) if rates else None,
        "records": sum(sizes) if sizes else None,
        "has_replicas": any(row["has_replicas"] for row in partitions),
        "under_replicated": sum(bool(row["out_of_sync"]) for row in partitions),
        "without_leader": sum(row["has_replicas"] and row["leader"] is None for row in partitions),
    }


def _matrix(groups: Sequence[Row], partitions: Sequence[Row], cells: Sequence[Row], *, is_past: bool) -> Row:
    """Ages of the groups and partitions that the matrix shows: those with the greatest ages, partitions by number."""
    shown = [row["group_id"] for row in groups[:MOST_GROUPS]]
    by_age = sorted(partitions, key=lambda row: (-(row["lag_seconds"] or 0), row["partition"]))
    columns = sorted(row["partition"] for row in by_age[:MOST_PARTITIONS])
    ages = {(cell["group_id"], cell["partition"]): {name: cell[name] for name in _AGE} for cell in cells}
    # the history has the partitions that were behind; in a group without unknown ones the others were at the end
    caught_up = {
        row["group_id"] for row in groups if is_past and not row["unknown_partitions"] and row["partitions"] == len(partitions)
    }
    rows = [
        {
            "group_id": group,
            "ages": [
                {"partition": column, **ages.get((group, column), _AT_END)}
                for column in columns
                if (group, column) in ages or group in caught_up
            ],
        }
        for group in shown
    ]
    return {
        "partitions": columns,
        "groups": rows,
        "hidden_groups": len(groups) - len(shown),
        "hidden_partitions": len(partitions) - len(columns),
    }
