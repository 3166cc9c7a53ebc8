"""Tools about groups: the list, one group, its timeline. Their values are those of the pages `groups` and `group`."""

from collections.abc import Sequence

from pipelines.dashboard.agents.answers import (
    EventAnswer,
    GroupAnswer,
    GroupsAnswer,
    IncidentAnswer,
    MemberAnswer,
    OneGroupAnswer,
    PartitionAnswer,
    SharePartitionAnswer,
    TimelineAnswer,
)
from pipelines.dashboard.agents.asked_moment import AskedMoment
from pipelines.dashboard.agents.bounds import within_bytes, within_rows
from pipelines.dashboard.pages.group.group import figures_of, group_page, offsets_of
from pipelines.dashboard.pages.groups.group_filter import SORTS
from pipelines.dashboard.pages.groups.groups import groups_page
from pipelines.dashboard.pages.parts.page import choice
from pipelines.dashboard.path_names import encode_name
from pipelines.dashboard.state.moment import Moment, Row

#: Orders beside those of the page, each with its figure: the fastest growth of lag, the nearest loss of records.
_FIGURES = {"slope": "lag_slope_per_second", "loss": "retention_margin_seconds"}
ORDERS = (*SORTS, *_FIGURES)
#: Groups that an order by a figure compares, those with the most lag: each group's rows are read.
MOST_COMPARED = 300
#: Rebalances of a storm that an answer lists.
_OF_A_STORM = 6


def groups(position: AskedMoment, sort: str, filters: dict[str, str], after: str | None, limit: int) -> GroupsAnswer:
    """Groups in an order. Raises InvalidRequest for an unknown order, or `after` that is not in the list."""
    moment = position.moment
    if choice("sort", sort, ORDERS) in _FIGURES:
        return _by_figure(position, _FIGURES[sort], filters, limit)
    model, rows = _listed(moment, {**filters, "sort": sort}, after, limit)
    shown = rows[:limit]
    more = encode_name(shown[-1]["group_id"]) if len(rows) > limit else model["next"]
    return _answer(position, model, [row | _figures_of(moment, row["group_id"]) for row in shown], more, None)


def _by_figure(position: AskedMoment, figure: str, filters: dict[str, str], limit: int) -> GroupsAnswer:
    """Groups with a known figure, the worst first. Of the groups with the most lag, because the rows of each one are read."""
    moment = position.moment
    model, rows = _listed(moment, {**filters, "sort": "lag"}, None, MOST_COMPARED)
    compared = (row | _figures_of(moment, row["group_id"]) for row in rows[:MOST_COMPARED])
    known = [row for row in compared if row[figure] is not None]
    known.sort(key=lambda row: -row[figure] if figure == _FIGURES["slope"] else row[figure])
    note = within_rows(len(known), min(limit, len(known)), f"groups with a known {figure}")
    if model["found"] > MOST_COMPARED:
        note = f"compared are the {MOST_COMPARED} groups with the most lag, of {model['found']}"
    return _answer(position, model, known[:limit], None, note)


def _answer(position: AskedMoment, model: Row, rows: list[Row], more: str | None, note: str | None) -> GroupsAnswer:
    found = GroupAnswer.of_all({**row, "reasons": [each["sentence"] for each in row["reasons"]]} for row in rows)
    answer = GroupsAnswer(**position.header(), total=model["total"], found=model["found"], groups=found, next=more, cut=note)
    bounded = within_bytes(answer, "groups")
    if len(bounded.groups) < len(found) and bounded.groups:
        bounded.next = encode_name(bounded.groups[-1].group_id)
    return bounded


def _listed(moment: Moment, query: dict[str, str], after: str | None, limit: int) -> tuple[Row, list[Row]]:
    """The model of the last page that is needed for `limit` rows, and the rows of all."""
    rows: list[Row] = []
    while True:
        model = groups_page(moment, {**query, "after": after or ""})
        rows += model["groups"]
        after = model["next"]
        if after is None or len(rows) >= limit:
            return model, rows


def _figures_of(moment: Moment, group: str) -> Row:
    found = figures_of(offsets_of(moment, group))
    return {name: found[name] for name in _FIGURES.values()}


def group(position: AskedMoment, name: str, limit: int) -> OneGroupAnswer:
    """One group with its incidents, members and positions. Raises NoSuchPage for an unknown one."""
    model = group_page(position.moment, name, {"tab": "members"})
    record = model["group"] or {}
    members = [{**row, "owns": _owned(row["assigned"])} for row in model["rows"]]
    offsets, shares = model["offsets"], model["share_offsets"]
    answer = OneGroupAnswer(
        **{
            **position.header(),
            **model["figures"],
            **{key: model[key] for key in ("group_id", "owner", "exists", "member_facts")},
            **{key: record.get(key) for key in ("state", "group_type", "generation")},
            "assignor": record.get("protocol"),
            "status": model["status"]["status"],
            "findings": IncidentAnswer.of_all(model["status"]["reasons"]),
            "members": MemberAnswer.of_all(members[:limit]),
            "partitions": PartitionAnswer.of_all(offsets[:limit]),
            "share_partitions": SharePartitionAnswer.of_all(shares[:limit]),
        }
    )
    lists = (members, "members"), (offsets, "partitions"), (shares, "share partitions")
    notes = [within_rows(len(rows), min(limit, len(rows)), name) for rows, name in lists]
    answer.cut = "; ".join(note for note in notes if note) or None
    return within_bytes(answer, "findings", "partitions", "share_partitions", "members")


def _owned(assigned: Sequence[Row] | None) -> dict[str, list[int]] | None:
    if assigned is None:
        return None
    return {str(each["topic"] or each["topic_id"]): sorted(each["partitions"]) for each in assigned}


def timeline(position: AskedMoment, name: str, span: str, limit: int) -> TimelineAnswer:
    """Events of a group. Raises NoSuchPage for an unknown one, and InvalidRequest for an invalid span."""
    model = group_page(position.moment, name, {"span": span})
    rebalances, points = model["rebalances"], model["lag_history"]
    events = model["events"]
    shown = EventAnswer.of_all({**event, "events": event.get("events", [])[:_OF_A_STORM]} for event in events[:limit])
    answer = TimelineAnswer(
        **position.header(),
        group_id=name,
        start=model["span"]["start"],
        rebalances=len(rebalances),
        partitions_moved=sum(row["partitions_moved"] or 0 for row in rebalances),
        seconds_without_owner=sum(row["seconds_without_owner"] or 0 for row in rebalances),
        resets=len(model["resets"]),
        greatest_lag=max((row["lag"] for row in points if row["lag"] is not None), default=None),
        greatest_lag_seconds=max((row["lag_seconds"] for row in points if row["lag_seconds"] is not None), default=None),
        events=shown,
        cut=within_rows(len(events), len(shown), "events"),
    )
    return within_bytes(answer, "events")
