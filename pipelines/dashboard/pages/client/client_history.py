"""One client, named by its client id or its host: its members, and the topics that it consumed in a span."""

from typing import Any

from pipelines.dashboard.history.span import Span
from pipelines.dashboard.state.moment import Moment
from pipelines.tables.store import literal, timestamp_literal

Row = dict[str, Any]

#: Rows of members and stays that a page reads; a client id such as that of a library may be in every group.
MOST_ROWS = 2_000

_MEMBERS = """
SELECT group_id, member_id, group_instance_id, client_id, client_host, rack_id, assigned, record_timestamp FROM members
WHERE {client} ORDER BY group_id, client_id, member_id LIMIT {most}
"""
_OWNERS = """
SELECT group_id, member_id, group_instance_id, client_id, client_host, topic, topic_id,
       array_agg(partition ORDER BY partition) AS partitions, max(since) AS record_timestamp
FROM ownership WHERE {client} AND (since IS NULL OR since <= {at}) AND (until IS NULL OR until > {at})
GROUP BY group_id, member_id, group_instance_id, client_id, client_host, topic, topic_id
ORDER BY group_id, client_id, member_id, topic LIMIT {most}
"""
# both columns are those that the view partitions its windows by, so the filter reads the rows of the client only
_STAYS = """
SELECT client_id, client_host, group_id, topic, topic_id, since, until FROM consumption_edges
WHERE {client} AND (since IS NULL OR since <= {end}) AND (until IS NULL OR until >= {start})
ORDER BY group_id, topic, since NULLS FIRST, client_id, client_host LIMIT {most}
"""
_IS_KNOWN = "SELECT DISTINCT group_id FROM ownership_history WHERE {client}"
_LAG = """
SELECT group_id, topic, partition, lag, lag_seconds, lag_seconds_low, lag_seconds_high, lag_method, lag_reason FROM lag
WHERE {client} ORDER BY lag_seconds DESC NULLS LAST, lag DESC NULLS LAST, group_id, topic, partition LIMIT {most}
"""


class ClientQueries:
    """The rows of one client id or host. Brokers write a host with a slash before it; the name may omit it."""

    def __init__(self, moment: Moment, client: str, span: Span) -> None:
        self._moment = moment
        self._client = client
        self._values = {
            "client": self._where("client_host"),
            "start": timestamp_literal(span.start),
            "end": timestamp_literal(span.end),
            "most": literal(MOST_ROWS),
        }

    def members(self) -> list[Row]:
        """Members at the moment, by group; those with partitions where the table of members was removed."""
        if not self._moment.is_derived:
            return self._rows(_MEMBERS)
        found: dict[tuple[str, str], Row] = {}
        for row in self._rows(_OWNERS, at=timestamp_literal(self._moment.batch.finished_at)):
            topic = {"topic": row.pop("topic"), "topic_id": row.pop("topic_id"), "partitions": row.pop("partitions")}
            member = found.setdefault((row["group_id"], row["member_id"]), {**row, "rack_id": None, "assigned": []})
            member["assigned"].append(topic)
        return list(found.values())

    def stays(self) -> list[Row]:
        """Intervals in which the client owned partitions of a topic, by group and topic. They may begin before the span."""
        return self._rows(_STAYS)

    def lag(self) -> list[Row]:
        """Partitions that the client owns, the oldest unread record first; none for a past moment."""
        if not self._moment.is_newest or self._moment.sampled_at is None:
            return []
        rows: list[Row] = self._moment.query(_LAG.format(**{**self._values, "client": self._where("member_host")})).to_pylist()
        return rows

    def is_known(self) -> bool:
        """True if the client ever owned a partition."""
        return bool(self._moment.query(_IS_KNOWN.format(**self._values)).num_rows)

    def _where(self, host: str) -> str:
        name, with_slash = literal(self._client), literal(f"/{self._client.removeprefix('/')}")
        return f"(client_id = {name} OR {host} = {with_slash})"

    def _rows(self, sql: str, **values: str) -> list[Row]:
        rows: list[Row] = self._moment.query(sql.format(**self._values, **values)).to_pylist()
        return rows
