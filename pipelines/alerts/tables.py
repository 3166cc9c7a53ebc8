"""Rows that rules read, from the tables at one batch. Each table is read once per evaluation, whatever the number of rules.

Unknown values are null and remain null: rows of old samples and groups without a known status are unknown, not zero.
"""

import math
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.query.engine import Snapshot
from pipelines.query.rebalances import IS_REBALANCE
from pipelines.query.tables_age import longest_batch
from pipelines.runtime.timestamps import at_ms, to_ms
from pipelines.tables.data_age import job_batch_at, limit_of
from pipelines.tables.store import timestamp_literal

#: Value of rows that no limit concerns, such as the retention margin of a group that has read everything.
_NEVER = math.inf

#: Age above which values are unknown, if neither the file nor the job has a limit.
_STALE_AFTER_MS = 600_000

#: Kind of rule → its value in the columns of `lag`.
LAG_VALUES = {
    "lag": "CASE WHEN lag < 0 THEN 0 ELSE lag END",
    "lag_seconds_low": "lag_seconds_low",
    "messages_lost": "messages_lost",
    "retention_margin": "CASE WHEN lag <= 0 THEN CAST('Infinity' AS DOUBLE) ELSE retention_margin_seconds END",
}
_UNCONSUMED = "SELECT group_id, topic, partition FROM lag WHERE unconsumed IS NOT NULL"
_SAME_POSITION = "u.group_id = e.group_id AND u.topic = e.topic AND u.partition = e.partition"


class RuleTables:
    """Rows that rules read, at one batch and one time."""

    def __init__(self, snapshot: Snapshot, now_ms: int, stale_after_ms: int | None) -> None:
        """`stale_after_ms` is the age above which values are unknown; None: it follows from the interval of the job."""
        self.snapshot = snapshot
        self.now_ms = now_ms
        self._stale_after_ms = stale_after_ms

    @cached_property
    def expected_seconds(self) -> float | None:
        """Age up to which the newest batch and sample are expected to be; None without an interval of the job."""
        interval = self.snapshot.batch.interval_seconds
        if interval is None:
            return None
        return limit_of(interval, longest_batch(self.snapshot.query, self.snapshot.batch)).total_seconds()

    @property
    def stale_after_ms(self) -> float:
        """Age above which values are unknown."""
        if self._stale_after_ms is not None:
            return self._stale_after_ms
        return _STALE_AFTER_MS if self.expected_seconds is None else self.expected_seconds * 1_000

    @property
    def is_current(self) -> bool:
        """Whether the last batch is recent."""
        return self.batch_age_ms <= self.stale_after_ms

    @cached_property
    def batch_at_ms(self) -> int:
        """Time of the last batch of the job."""
        return to_ms(job_batch_at(self.snapshot.batch, self._sampled_at))

    @property
    def batch_age_ms(self) -> int:
        """Time since the last batch of the job."""
        return self.now_ms - self.batch_at_ms

    @property
    def oldest_sample(self) -> datetime:
        """Time of the oldest sample that counts."""
        return at_ms(round(self.now_ms - self.stale_after_ms))

    @cached_property
    def lag(self) -> pa.Table:
        """Values of `lag`, null where the sample is old. Partitions without commit have no position, so no lag.

        Positions that no member can read do not count, as for the status of groups.
        """
        values = ", ".join(f"CASE WHEN is_current THEN {value} END AS {name}" for name, value in LAG_VALUES.items())
        recent = f"sampled_at >= {timestamp_literal(self.oldest_sample)}"
        counts = "AND unconsumed IS NULL" if self._knows_unconsumed else ""
        rows = f"SELECT *, COALESCE({recent}, FALSE) AS is_current FROM lag WHERE group_offset IS NOT NULL {counts}"
        return self._rows(f"SELECT group_id, topic, partition, {values} FROM ({rows}) r")

    @cached_property
    def expiry(self) -> pa.Table:
        """Seconds until the expiry of every committed offset, infinite for never; without positions that no member can read."""
        counts = f"LEFT JOIN ({_UNCONSUMED}) u ON {_SAME_POSITION} WHERE u.topic IS NULL" if self._knows_unconsumed else ""
        rows = self._rows(
            f"SELECT e.group_id, e.topic, e.partition, arrow_cast(e.expires_at, 'Int64') AS at FROM expiring_offsets e {counts}"
        )
        seconds = pc.divide(pc.subtract(rows["at"], self.now_ms * 1000).cast(pa.float64()), 1e6)
        return rows.append_column("expires_in", pc.fill_null(seconds, _NEVER))

    @cached_property
    def _knows_unconsumed(self) -> bool:
        """False before the first sample, and for `lag` of a layout before 1.6."""
        if "lag" not in self.snapshot.batch.versions:
            return False
        return "unconsumed" in self.snapshot.query("SELECT * FROM lag LIMIT 0").column_names

    @cached_property
    def status(self) -> pa.Table:
        """Statuses of groups, null where the evaluation is old."""
        recent = f"evaluated_at >= {timestamp_literal(self.oldest_sample)}"
        return self._rows(
            f"SELECT group_id, CASE WHEN {recent} THEN status END AS status, rule AS status_rule, detail FROM group_status"
        )

    @cached_property
    def findings(self) -> pa.Table:
        """Rules that found something, by group."""
        unnested = "SELECT group_id, unnest(findings) AS finding FROM group_status"
        return self._rows(f"SELECT group_id, finding['rule'] AS rule FROM ({unnested}) f")

    def status_of(self, group: str) -> dict[str, Any] | None:
        """Findings of a group and the time of their evaluation; None without a status, or if it is old."""
        found, number_of = self._statuses
        number = number_of.get(group)
        return None if number is None else found.slice(number, 1).to_pylist()[0]

    @cached_property
    def _statuses(self) -> tuple[pa.Table, dict[str, int]]:
        """Groups with findings, and the row of each."""
        if "group_status" not in self.snapshot.batch.versions:
            return pa.table({}), {}
        recent = f"evaluated_at >= {timestamp_literal(self.oldest_sample)}"
        rows = self.snapshot.query(
            f"SELECT group_id, findings, evaluated_at FROM group_status WHERE {recent} AND cardinality(findings) > 0"
        )
        return rows, {group: number for number, group in enumerate(rows["group_id"].to_pylist())}

    def rebalances(self, window_ms: int) -> pa.Table:
        """Number of rebalances of every group in the window, as the status rule `rebalance_storm` counts them.

        Groups that exist and have none have 0; of a group that was deleted only its rebalances count.
        """
        since = timestamp_literal(at_ms(self.now_ms - window_ms))
        return self._rows(
            "SELECT group_id, CAST(sum(n) AS DOUBLE) AS rebalance_storm FROM ("
            f"SELECT group_id, 1 AS n FROM membership_history WHERE {IS_REBALANCE} AND record_timestamp > {since} "
            "UNION ALL SELECT group_id, 0 AS n FROM groups) r GROUP BY group_id"
        )

    def quarantined(self, window_ms: int) -> float:
        """Number of records that were put into quarantine in the window."""
        since = timestamp_literal(at_ms(self.now_ms - window_ms))
        (row,) = self._rows(
            "SELECT count(*) AS n FROM quarantine q "
            f"JOIN (SELECT batch_id FROM batches WHERE finished_at >= {since}) b ON q.batch_id = b.batch_id"
        ).to_pylist()
        return float(row["n"])

    def sample_age_seconds(self) -> float | None:
        """Seconds since the newest sample; None without samples."""
        return None if self._sampled_at is None else (self.now_ms - to_ms(self._sampled_at)) / 1000

    @cached_property
    def _sampled_at(self) -> datetime | None:
        if "lag" not in self.snapshot.batch.versions:
            return None
        (row,) = self._rows("SELECT max(sampled_at) AS at FROM lag").to_pylist()
        at: datetime | None = row["at"]
        return at

    def _rows(self, sql: str) -> pa.Table:
        return self.snapshot.query(sql)
