"""Values that only the HTML of the page of a client needs: its chart with the summary."""

from collections.abc import Mapping
from typing import Any

from pipelines.dashboard.formatting.quantities import plural
from pipelines.dashboard.history.span import OFFERED
from pipelines.dashboard.pages.client.client_history import MOST_ROWS
from pipelines.dashboard.pages.client.stays import stays_chart
from pipelines.dashboard.pages.group.group_view import partition_ranges
from pipelines.dashboard.pages.parts.group_defects import defect_names
from pipelines.dashboard.state.moment import Moment


def client_view(model: Mapping[str, Any], _: Moment) -> Mapping[str, Any]:
    """Names for the template client.html."""
    return {
        **defect_names(model["groups"]),
        "chart": stays_chart(model["stays"], model["span"]["start"], model["span"]["end"]),
        "summary": stays_summary(model),
        "spans": OFFERED,
        "partitions": partition_ranges,
        "most_rows": MOST_ROWS,
    }


def stays_summary(model: Mapping[str, Any]) -> str:
    """One sentence with the numbers of the chart."""
    stays = model["stays"]
    groups, topics = ({row[name] for row in stays} for name in ("group_id", "topic"))
    ended = sum(row["until"] is not None for row in stays)
    return (
        f"Last {model['span']['text']}: {plural(len(stays), 'stay')} in {plural(len(groups), 'group')} and "
        f"{plural(len(topics), 'topic')}, {ended:,} of them ended."
    )
