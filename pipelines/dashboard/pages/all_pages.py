"""The pages, in the order in which their paths are matched."""

from pipelines.dashboard.pages.alerts import alerts_page, alerts_view
from pipelines.dashboard.pages.changes import changes_page
from pipelines.dashboard.pages.client import client_page
from pipelines.dashboard.pages.client_view import client_view
from pipelines.dashboard.pages.clients import clients_page, clients_view
from pipelines.dashboard.pages.group import group_page
from pipelines.dashboard.pages.group_view import group_view
from pipelines.dashboard.pages.groups import groups_csv, groups_page, groups_view
from pipelines.dashboard.pages.offsets_topic import offsets_topic_page
from pipelines.dashboard.pages.offsets_topic_view import offsets_topic_view
from pipelines.dashboard.pages.overview import overview_page, overview_view
from pipelines.dashboard.pages.page import Page
from pipelines.dashboard.pages.topic import topic_page
from pipelines.dashboard.pages.topic_view import topic_view
from pipelines.dashboard.pages.topics import topics_page, topics_view

PAGES = (
    Page(
        "overview",
        "",
        "overview.html",
        "What needs attention in a cluster",
        lambda moment, _names, _query: overview_page(moment),
        lambda _model: "Overview",
        overview_view,
    ),
    Page(
        "groups",
        "groups",
        "groups.html",
        "Groups of a cluster, filtered and sorted",
        lambda moment, _names, query: groups_page(moment, query),
        lambda _model: "Groups",
        groups_view,
        lambda moment, _names, query: groups_csv(moment, query),
    ),
    Page(
        "groups",
        "groups/{group}",
        "group.html",
        "One group: status, history, events, and the rows of a tab",
        lambda moment, names, query: group_page(moment, names["group"], query),
        lambda model: str(model["group_id"]),
        group_view,
    ),
    Page(
        "topics",
        "topics",
        "topics.html",
        "Topics that groups read, sorted by age, lag or growth",
        lambda moment, _names, query: topics_page(moment, query),
        lambda _model: "Topics",
        topics_view,
    ),
    Page(
        "topics",
        "topics/{topic}",
        "topic.html",
        "One topic: ages by group and partition, growth of the log, replicas, topic ids",
        lambda moment, names, query: topic_page(moment, names["topic"], query),
        lambda model: str(model["topic"]),
        topic_view,
    ),
    Page(
        "clients",
        "clients",
        "clients.html",
        "Client ids of the members, with hosts, groups and lag",
        lambda moment, _names, query: clients_page(moment, query),
        lambda _model: "Clients",
        clients_view,
    ),
    Page(
        "clients",
        "clients/{client}",
        "client.html",
        "One client id or host: its members, and its stays in groups over time",
        lambda moment, names, query: client_page(moment, names["client"], query),
        lambda model: str(model["client"]),
        client_view,
    ),
    Page(
        "offsets-topic",
        "offsets-topic",
        "offsets_topic.html",
        "The offsets topic: records by log partition, groups that write, quarantine, batches",
        lambda moment, _names, query: offsets_topic_page(moment, query),
        lambda _model: "Offsets topic",
        offsets_topic_view,
    ),
    Page(
        "alerts",
        "alerts",
        "alerts.html",
        "Alerts that are pending or firing, those that ended, and deliveries",
        lambda moment, _names, query: alerts_page(moment, query),
        lambda _model: "Alerts",
        alerts_view,
        is_of_batch=False,
    ),
    Page(
        "overview",
        "changes",
        "changes.html",
        "Changes between two times",
        lambda moment, _names, query: changes_page(moment, query),
        lambda _model: "Changes",
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
