"""Values that only the HTML of the page of a topic needs: its charts with their summaries, and the groups with defects."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pipelines.dashboard.charts.series_chart import series_chart
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import age, duration, pace, plural
from pipelines.dashboard.history.default_span import offered_spans
from pipelines.dashboard.pages.parts.group_defects import defect_names
from pipelines.dashboard.pages.topic.matrix import SHADES, matrix
from pipelines.dashboard.pages.topic.topic import MOST_LISTED, MOST_PARTITION_ROWS
from pipelines.dashboard.state.moment import Moment

#: Hot partitions that the sentence names.
MOST_HOT = 10
_GROWTH_HEIGHT = 88.0


def topic_view(model: Mapping[str, Any], _: Moment) -> Mapping[str, Any]:
    """Names for the template topic.html."""
    shown, span = model["matrix"], model["span"]
    ages = {row["group_id"]: {cell["partition"]: cell["lag_seconds"] for cell in row["ages"]} for row in shown["groups"]}
    lower_bounds = {
        (row["group_id"], cell["partition"])
        for row in shown["groups"]
        for cell in row["ages"]
        if cell["lag_seconds"] and cell["lag_seconds_high"] is None
    }
    points = [(row["at"], row["records_per_second"]) for row in model["growth"]]
    return {
        **defect_names(model["groups"]),
        "matrix": matrix(shown["partitions"], ages, lower_bounds),
        "ages": ages,
        "lower_bounds": lower_bounds,
        "matrix_summary": matrix_summary(shown),
        "shades": shade_words(),
        "hot_summary": hot_summary(model["hot"]),
        "growth": series_chart(points, span["start"], span["end"], pace, height=_GROWTH_HEIGHT, is_stepped=True),
        "growth_summary": growth_summary(points, span["text"]),
        "spans": offered_spans(model["span"]["text"]),
        "most_listed": MOST_LISTED,
        "most_partitions": MOST_PARTITION_ROWS,
    }


def hot_summary(hot: Sequence[Mapping[str, Any]]) -> str:
    """One sentence about the hot partitions; empty for none."""
    if not hot:
        return ""
    first = hot[0]
    numbers = ", ".join(str(row["partition"]) for row in hot[:MOST_HOT]) + (" and others" if len(hot) > MOST_HOT else "")
    place = f"partition {numbers}, one" if len(hot) == 1 else f"partitions {numbers}, {len(hot):,}"
    records = f"{sum(row['records'] for row in hot):,} of {plural(first['records_of_topic'], 'record')}"
    rate = pace(sum(row["records_per_second"] for row in hot), "records")
    window = duration(first["window_seconds"])
    return f"{records} of the last {window} are on {place} of {first['compared_partitions']:,}: {rate}."


def shade_words() -> list[tuple[int, str]]:
    """Number and meaning of each shade of the matrix."""
    words = ["at the end", *(f"≤ {duration(most)}" for most in SHADES[1:]), f"> {duration(SHADES[-1])}"]
    return list(enumerate(words))


def matrix_summary(shown: Mapping[str, Any]) -> str:
    """One sentence with the numbers of the matrix."""
    cells = [(row["group_id"], cell) for row in shown["groups"] for cell in row["ages"]]
    known = [(group, cell) for group, cell in cells if cell["lag_seconds"] is not None]
    behind = [(group, cell) for group, cell in known if cell["lag_seconds"] > 0]
    text = f"Behind: {len(behind):,} of {plural(len(cells), 'pair')} of group and partition"
    if len(known) < len(cells):
        text += f", {len(cells) - len(known):,} unknown"
    if behind:
        group, cell = max(behind, key=lambda each: each[1]["lag_seconds"])
        text += f"; the greatest age is {age(cell)}, of {visible(group, 60)} on partition {cell['partition']}"
    return f"{text}."


def growth_summary(points: Sequence[tuple[datetime, float | None]], span: str) -> str:
    """One sentence with the numbers of the growth."""
    known = [value for _, value in points if value is not None]
    if not known:
        return f"Last {span}: no two samples of the log ends."
    mean, highest = sum(known) / len(known), max(known)
    return f"Last {span}: {pace(mean, 'records')} on average, {pace(highest, 'records')} at most."
