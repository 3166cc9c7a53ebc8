"""Tools about a cluster: changes between two times, owners of partitions, expiry, open transactions."""

from datetime import datetime, timedelta

from pipelines.dashboard.agents.answers import (
    BlockedAnswer,
    ChangeAnswer,
    ChangesAnswer,
    ExpiringAnswer,
    ExpiryAnswer,
    OwnersAnswer,
    StayAnswer,
    TransactionsAnswer,
)
from pipelines.dashboard.agents.asked_moment import AskedMoment
from pipelines.dashboard.agents.bounds import within_bytes, within_rows
from pipelines.dashboard.history.span import span_until
from pipelines.dashboard.pages.changes.changes import changes_page
from pipelines.dashboard.pages.group.group_tabs import transactions_of
from pipelines.dashboard.state.moment import Moment, Row
from pipelines.lag.tables.blocking_transactions import pending_offsets
from pipelines.runtime.errors import RemovedState
from pipelines.tables.store import literal, timestamp_literal

_STAYS = """
SELECT group_id, topic, partition, member_id, client_id, client_host, since, until FROM ownership
WHERE topic = {topic} AND partition = {partition} AND (since IS NULL OR since <= {end}) AND (until IS NULL OR until >= {start})
AND {group} ORDER BY group_id, since NULLS FIRST
"""
_EXPIRING = """
SELECT group_id, topic, count(*) AS partitions, min(expires_at) AS expires_at, max(state) AS state FROM expiring_offsets
WHERE expires_at <= {until} AND {group} GROUP BY group_id, topic ORDER BY expires_at, group_id, topic
"""
_BLOCKED = "SELECT DISTINCT group_id FROM lag WHERE blocked_by_transaction"


def changes(position: AskedMoment, since: datetime | None, group: str | None, limit: int) -> ChangesAnswer:
    """What changed since an earlier time, as the page `changes` and `grouplake diff` say it.

    Raises:
        UsageError: no batch at the earlier time, or it is not earlier.
    """
    model = changes_page(position.moment, {} if since is None else {"from": since.isoformat()}, most_rows=None, group=group)
    rows = model["changes"]
    answer = ChangesAnswer(
        **position.header(),
        **{"from": model["from"]},
        summary=model["summary"],
        changes=ChangeAnswer.of_all(rows[:limit]),
        cut=within_rows(len(rows), min(limit, len(rows)), "changes"),
    )
    return within_bytes(answer, "changes")


def owners(position: AskedMoment, topic: str, partition: int, group: str | None, span: str, limit: int) -> OwnersAnswer:
    """Stays of members on a partition until the time of the answer, also those that began before the span."""
    moment = position.moment
    cut = span_until(moment.at, span)
    values = {"start": timestamp_literal(cut.start), "end": timestamp_literal(cut.end), "group": _named(group)}
    rows = moment.query(_STAYS.format(topic=literal(topic), partition=literal(partition), **values)).to_pylist()
    answer = OwnersAnswer(
        **position.header(),
        start=cut.start,
        stays=StayAnswer.of_all(rows[-limit:]),
        cut=within_rows(len(rows), min(limit, len(rows)), "stays, the newest"),
    )
    return within_bytes(answer, "stays")


def expiring(position: AskedMoment, hours: float, group: str | None, limit: int) -> ExpiringAnswer:
    """Offsets that the broker removes within some hours, the next first: the view `expiring_offsets`."""
    at = position.moment.at
    until = at + timedelta(hours=hours)
    rows = position.moment.query(_EXPIRING.format(until=timestamp_literal(until), group=_named(group))).to_pylist()
    found = [{**row, "expires_in_seconds": round((row["expires_at"] - at).total_seconds())} for row in rows]
    answer = ExpiringAnswer(
        **position.header(),
        until=until,
        expiring=ExpiryAnswer.of_all(found[:limit]),
        cut=within_rows(len(found), min(limit, len(found)), "rows"),
    )
    return within_bytes(answer, "expiring")


def transactions(position: AskedMoment, group: str | None, limit: int) -> TransactionsAnswer:
    """Positions that wait for open transactions: the tab Transactions of each group that has such."""
    moment = position.moment
    names = [group] if group is not None else _blocked_groups(moment)
    rows = [{"group_id": name, **row} for name in names for row in _waiting(moment, name)]
    answer = TransactionsAnswer(
        **position.header(),
        blocked=BlockedAnswer.of_all(rows[:limit]),
        cut=within_rows(len(rows), min(limit, len(rows)), "positions"),
    )
    return within_bytes(answer, "blocked")


def _waiting(moment: Moment, group: str) -> list[Row]:
    """The rows of the tab, and positions that wait for a transaction with an unknown id."""
    named = transactions_of(moment, group)
    found = [{**row, "waits_since": row.get("start_timestamp") or row.get("record_timestamp")} for row in named]
    hidden = {(row["topic"], row["partition"]) for row in named if row["committed_offset"] is None}
    for row in moment.lag(group):
        if row.get("blocked_by_transaction") and (row["topic"], row["partition"]) not in hidden:
            unnamed = {"transactional_id": None, "producer_id": None, "state": None, "committed_offset": None}
            found.append({**row, **unnamed, "waits_since": row.get("blocked_since")})
    return found


def _blocked_groups(moment: Moment) -> list[str]:
    """Groups that may have a position that waits."""
    found = set(moment.query(f"SELECT DISTINCT group_id FROM ({pending_offsets(moment.batch)}) p")["group_id"].to_pylist())
    summaries: list[Row] = moment.summaries().select(["group_id", "lag"]).to_pylist()
    try:
        found.update(moment.query(_BLOCKED)["group_id"].to_pylist() if "lag" in moment.batch.versions else ())
    except RemovedState:
        # of an earlier sample only the history remains; nothing waits where nothing is left to read
        found.update(row["group_id"] for row in summaries if row["lag"] != 0)
    return sorted(found)


def _named(group: str | None) -> str:
    return "TRUE" if group is None else f"group_id = {literal(group)}"
