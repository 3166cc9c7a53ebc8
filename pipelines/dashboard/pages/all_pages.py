"""The pages, in the order in which their paths are matched, and the navigation."""

from pipelines.dashboard.pages.alerts.alerts import alerts_page, alerts_view
from pipelines.dashboard.pages.changes.changes import changes_page, changes_view
from pipelines.dashboard.pages.client.client import client_page
from pipelines.dashboard.pages.client.client_view import client_view
from pipelines.dashboard.pages.clients.clients import clients_page, clients_view
from pipelines.dashboard.pages.group.group import group_page
from pipelines.dashboard.pages.group.group_view import group_view
from pipelines.dashboard.pages.group.slider_marks import slider_marks
from pipelines.dashboard.pages.groups.groups import groups_csv, groups_page, groups_view
from pipelines.dashboard.pages.offsets_topic.offsets_topic import offsets_topic_page
from pipelines.dashboard.pages.offsets_topic.offsets_topic_view import offsets_topic_view
from pipelines.dashboard.pages.overview.overview import overview_page, overview_view
from pipelines.dashboard.pages.parts.page import Page
from pipelines.dashboard.pages.topic.topic import topic_page
from pipelines.dashboard.pages.topic.topic_view import topic_view
from pipelines.dashboard.pages.topics.topics import topics_page, topics_view

PAGES = (
    Page(
        name="overview",
        path="",
        template="overview/overview.html",
        summary="What needs attention in a cluster",
        model=lambda moment, _names, _query: overview_page(moment),
        title=lambda _model: "Overview",
        view=overview_view,
    ),
    Page(
        name="groups",
        path="groups",
        template="groups/groups.html",
        summary="Groups of a cluster, filtered and sorted",
        model=lambda moment, _names, query: groups_page(moment, query),
        title=lambda _model: "Groups",
        view=groups_view,
        csv=lambda moment, _names, query: groups_csv(moment, query),
    ),
    Page(
        name="groups",
        path="groups/{group:name}",
        template="group/group.html",
        summary="One group: status, history, events, and the rows of a tab",
        model=lambda moment, names, query: group_page(moment, names["group"], query),
        title=lambda model: str(model["group_id"]),
        view=group_view,
        marks=slider_marks,
    ),
    Page(
        name="topics",
        path="topics",
        template="topics/topics.html",
        summary="Topics that groups read, sorted by age, lag or growth",
        model=lambda moment, _names, query: topics_page(moment, query),
        title=lambda _model: "Topics",
        view=topics_view,
    ),
    Page(
        name="topics",
        path="topics/{topic:name}",
        template="topic/topic.html",
        summary="One topic: ages by group and partition, growth of the log, replicas, topic ids",
        model=lambda moment, names, query: topic_page(moment, names["topic"], query),
        title=lambda model: str(model["topic"]),
        view=topic_view,
    ),
    Page(
        name="clients",
        path="clients",
        template="clients/clients.html",
        summary="Client ids of the members, with hosts, groups and lag",
        model=lambda moment, _names, query: clients_page(moment, query),
        title=lambda _model: "Clients",
        view=clients_view,
    ),
    Page(
        name="clients",
        path="clients/{client:name}",
        template="client/client.html",
        summary="One client id or host: its members, and its stays in groups over time",
        model=lambda moment, names, query: client_page(moment, names["client"], query),
        title=lambda model: str(model["client"]),
        view=client_view,
    ),
    Page(
        name="offsets-topic",
        path="offsets-topic",
        template="offsets_topic/offsets_topic.html",
        summary="The offsets topic: records by log partition, groups that write, quarantine, batches",
        model=lambda moment, _names, query: offsets_topic_page(moment, query),
        title=lambda _model: "Offsets topic",
        view=offsets_topic_view,
    ),
    Page(
        name="alerts",
        path="alerts",
        template="alerts/alerts.html",
        summary="Alerts that are pending or firing, those that ended, and deliveries",
        model=lambda moment, _names, query: alerts_page(moment, query),
        title=lambda _model: "Alerts",
        view=alerts_view,
        is_of_batch=False,
    ),
    Page(
        name="overview",
        path="changes",
        template="changes/changes.html",
        summary="Changes between two times",
        model=lambda moment, _names, query: changes_page(moment, query),
        title=lambda _model: "Changes",
        view=changes_view,
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
#: For viewers that may query, on servers with `dashboard.sql`.
SQL_ENTRY = ("sql", "SQL", ("sql",))
