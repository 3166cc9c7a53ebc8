"""The list of client ids of the members: hosts, groups, partitions, and the lag of what they own."""

from typing import Any

from pipelines.dashboard.pages.clients.client_rows import client_rows
from pipelines.dashboard.pages.parts.listing import Listing
from pipelines.dashboard.pages.parts.page import Query
from pipelines.dashboard.state.moment import Moment

Row = dict[str, Any]

LISTING = Listing(
    key="client_id",
    sorts={
        "age": ("lag_seconds", "descending"),
        "lag": ("lag", "descending"),
        "client": ("client_id", "ascending"),
        "members": ("members", "descending"),
        "hosts": ("hosts", "descending"),
        "groups": ("groups", "descending"),
        "partitions": ("partitions", "descending"),
    },
    searched=("client_id", "host"),
    ties=("lag_seconds", "lag", "partitions"),
)


def clients_page(moment: Moment, query: Query) -> Row:
    """The model: the clients of one page of the list. Raises UsageError for an invalid order or page."""
    return LISTING.page(client_rows(moment), query)


def clients_view(_model: Row, _moment: Moment) -> Row:
    """The orders of the list, for its headings."""
    return {"sorts": LISTING.sorts}
