"""Rows that rules read, from the tables at one batch. Each table is read once per evaluation, whatever the number of rules.

Unknown values are null and remain null: rows of old samples and groups without a known status are unknown, not zero.
"""

import math
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.query.engine import Snapshot
from pipelines.query.rebalances import IS_REBALANCE
from pipelines.tables.store import timestamp_literal
from pipelines.timestamps import at_ms, to_ms

#: Value of rows that no limit concerns, such as the retention margin of a group that has read everything.
_NEVER = math.inf

#: Kind of rule → its value in the columns of `lag`.
LAG_VALUES = {
    "lag": "CASE WHEN lag < 0 THEN 0 ELSE lag END",
    "lag_seconds_low": "lag_seconds_low",
    "messages_lost": "messages_lost",
    "retention_margin": "CASE WHEN lag <= 0 THEN CAST('Infinity' AS DOUBLE) ELSE retention_margin_seconds END",
}


class Tables:
    """Rows that rules read, at one batch and one time."""

    def __init__(self, snapshot: Snapshot, now_ms: int, stale_after_ms: int) -> None:
        self.snapshot = snapshot
        self.now_ms = now_ms
        self.stale_after_ms = stale_after_ms

    @property
    def is_current(self) -> bool:
        """Whether the last batch is recent."""
        return self.batch_age_ms <= self.stale_after_ms

    @property
    def batch_age_ms(self) -> int:
        """Time since the last batch."""
        return self.now_ms - to_ms(self.snapshot.batch.finished_at)

    @property
    def oldest_sample(self) -> datetime:
        """Time of the oldest sample that counts."""
        return at_ms(self.now_ms - self.stale_after_ms)

    @cached_property
    def lag(self) -> pa.Table:
        """Values of `lag`, null where the sample is old. Partitions without commit have no position, so no lag."""
        values = ", ".join(f"CASE WHEN is_current THEN {value} END AS {name}" for name, value in LAG_VALUES.items())
        recent = f"sampled_at >= {timestamp_literal(self.oldest_sample)}"
        rows = f"SELECT *, COALESCE({recent}, FALSE) AS is_current FROM lag WHERE group_offset IS NOT NULL"
        return self._rows(f"SELECT group_id, topic, partition, {values} FROM ({rows}) r")

    @cached_property
    def expiry(self) -> pa.Table:
        """Seconds until the expiry of every committed offset, infinite for never."""
        rows = self._rows("SELECT group_id, topic, partition, arrow_cast(expires_at, 'Int64') AS at FROM expiring_offsets")
        seconds = pc.divide(pc.subtract(rows["at"], self.now_ms * 1000).cast(pa.float64()), 1e6)
        return rows.append_column("expires_in", pc.fill_null(seconds, _NEVER))

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

    def rebalances(self, window_ms: int) -> pa.Table:
        """Number of rebalances of every group in the window, as the status rule `rebalance_storm` counts them."""
        since = timestamp_literal(at_ms(self.now_ms - window_ms))
        return self._rows(
            "SELECT group_id, CAST(count(*) AS DOUBLE) AS rebalance_storm FROM membership_history "
            f"WHERE {IS_REBALANCE} AND record_timestamp > {since} GROUP BY group_id"
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
        (row,) = self._rows("SELECT max(sampled_at) AS at FROM lag").to_pylist()
        return None if row["at"] is None else (self.now_ms - to_ms(row["at"])) / 1000

    def _rows(self, sql: str) -> pa.Table:
        rows = self.snapshot.query(sql)
        # DataFusion returns views of strings, which few functions of Arrow take
        return rows.cast(pa.schema([_plain_strings(field) for field in rows.schema]))


def _plain_strings(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
