"""The pages, in the order in which their paths are matched."""

from pipelines.dashboard.pages.group import group_page
from pipelines.dashboard.pages.group_view import group_view
from pipelines.dashboard.pages.page import Page

PAGES = (
    Page(
        "groups",
        "groups/{group}",
        "group.html",
        "One group: status, history, events, and the rows of a tab",
        lambda moment, names, query: group_page(moment, names["group"], query),
        lambda model: str(model["group_id"]),
        group_view,
    ),
)

#: Entries of the navigation: name, label, and the path below the path of the cluster.
NAVIGATION = (
    ("overview", "Overview", ()),
    ("groups", "Groups", ("groups",)),
    ("topics", "Topics", ("topics",)),
    ("clients", "Clients", ("clients",)),
    ("offsets-topic", "Offsets topic", ("offsets-topic",)),
    ("alerts", "Alerts", ("alerts",)),
)
