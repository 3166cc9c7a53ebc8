"""The tables of one batch in memory."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.query.snapshots.grouped_table import GroupedTable
from pipelines.query.snapshots.transactions_summary import TransactionsSummary
from pipelines.tables.store import Batch


@dataclass(frozen=True, eq=False)
class MemorySnapshot:
    """The tables of one batch in memory. It never changes, so a request that holds it sees one batch.

    - `recent`: the newest batches, the newest one first.
    - `lag`: a row per group and partition with a commit or an owner. Without samples the columns of ends and lag are null.
    """

    cluster: str
    batch: Batch
    recent: tuple[Batch, ...]
    lag: GroupedTable
    groups: GroupedTable
    members: GroupedTable
    quarantine_rows: int
    #: Completion of the newest maintenance batch; None without one.
    maintained_at: datetime | None
    #: Tables that folders of earlier versions do not have; None there.
    group_status: GroupedTable | None = None
    partition_status: GroupedTable | None = None
    brokers: pa.Table | None = None
    topic_partitions: pa.Table | None = None
    share_offsets: pa.Table | None = None
    #: None if the job reads no transactions.
    transactions: TransactionsSummary | None = None

    @cached_property
    def sampled_at(self) -> datetime | None:
        """Time of the newest sample of end offsets; None without one."""
        at: datetime | None = pc.max(self.lag.table["sampled_at"]).as_py()
        return at

    @cached_property
    def commits_read_until(self) -> datetime:
        """Time until which the rows of `lag` have the commits; of the batch without rows."""
        at: datetime | None = pc.max(self.lag.table["commits_read_until"]).as_py()
        return at or self.batch.finished_at

    @property
    def lag_at(self) -> datetime:
        """Time that the rows of `lag` are of: of the newest sample, of the batch without samples."""
        return self.sampled_at or self.batch.finished_at

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """Groups with a record, a commit or a member, sorted."""
        return tuple(sorted({*self.groups, *self.lag}))
