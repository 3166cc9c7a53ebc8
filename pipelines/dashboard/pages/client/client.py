"""The page of one client id or host: its members, and its stays in groups over time."""

from typing import Any

from pipelines.dashboard.history.span import span_until
from pipelines.dashboard.pages.client.client_history import MOST_ROWS, ClientQueries
from pipelines.dashboard.pages.parts.greatest_age import greatest_age
from pipelines.dashboard.pages.parts.group_defects import reasons_about
from pipelines.dashboard.pages.parts.page import NoSuchPage, Query
from pipelines.dashboard.state.moment import Moment

Row = dict[str, Any]

#: Partitions that the page lists.
MOST_PARTITIONS = 200
#: Groups whose status the page has: at a past time each is computed from the histories.
MOST_JUDGED = 24


def client_page(moment: Moment, client: str, query: Query) -> Row:
    """The model of the page.

    Raises:
        NoSuchPage: no member has this client id or host, and none had it as far as the history reaches back.
        UsageError: an invalid span.
    """
    span = span_until(moment.at, query.get("span"))
    queries = ClientQueries(moment, client, span)
    members, stays = queries.members(), queries.stays()
    if not members and not stays and not queries.is_known():
        raise NoSuchPage(f"no client id or host {client!r} at {moment.at:%Y-%m-%d %H:%M:%S} UTC")
    lag = queries.lag()
    members = [_member(row) for row in members]
    return {
        "client": client,
        "is_complete": max(len(members), len(stays), len(lag)) < MOST_ROWS,
        "figures": _figures(members, lag),
        "span": {"start": span.start, "end": span.end, "text": span.text},
        "groups": _groups(moment, members),
        "members": members,
        "stays": stays,
        "partitions": lag[:MOST_PARTITIONS],
        "partitions_found": len(lag),
    }


def _groups(moment: Moment, members: list[Row]) -> list[Row]:
    """Groups of the members, with the reasons of their status that concern the topics of the client."""
    topics: dict[str, set[str | None]] = {}
    for row in members:
        topics.setdefault(row["group_id"], set()).update(each["topic"] for each in row["assigned"] or [])
    judged = list(topics)[:MOST_JUDGED]
    statuses = moment.statuses(judged)
    return [
        {
            "group_id": group,
            "status": statuses.get(group, {}).get("status"),
            "reasons": reasons_about(statuses.get(group, {}), sorted(filter(None, topics[group])), moment.at),
        }
        for group in judged
    ]


def _member(row: Row) -> Row:
    """The member with its partitions by topic."""
    assigned = row.pop("assigned")
    number = None if assigned is None else sum(len(each["partitions"]) for each in assigned)
    return {**row, "assigned": assigned, "partitions": number}


def _figures(members: list[Row], lag: list[Row]) -> Row:
    lags = [row["lag"] for row in lag if row["lag"] is not None]
    return {
        "members": len(members),
        "groups": len({row["group_id"] for row in members}),
        "hosts": sorted({row["client_host"] for row in members}),
        "client_ids": sorted({row["client_id"] for row in members}),
        "partitions": sum(row["partitions"] or 0 for row in members),
        "lag": sum(max(0, each) for each in lags) if lags else None,
        **greatest_age(lag, "group_id"),
    }
