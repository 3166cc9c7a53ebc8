"""The state of a cluster at a time, as pages read it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from pipelines.dashboard.state.query_cache import Query
from pipelines.dashboard.state.recent_ages import BEFORE, TREND, ages_between
from pipelines.dashboard.state.teams import Teams
from pipelines.tables.data_age import DataAge
from pipelines.tables.store import Batch

#: A row of a table.
Row = dict[str, Any]


class BatchState(ABC):
    """The tables at one batch. Immutable for its readers, which may be several threads; unknown values are None."""

    batch: Batch
    #: True if rows of groups are left out that the viewer may not see.
    is_limited: bool = False
    #: True if the tables of the batch were removed, so that the state follows from the histories, which have less.
    is_derived: bool = False

    @property
    @abstractmethod
    def sampled_at(self) -> datetime | None:
        """Time of the sample of the rows of `lag`; None without one."""

    @property
    @abstractmethod
    def commits_read_until(self) -> datetime:
        """Time until which the lag has the commits: that of the sample, whatever was written to the tables afterwards."""

    @abstractmethod
    def summaries(self) -> pa.Table:
        """One row per group, sorted by name, with the columns of `summary_schema`."""

    @abstractmethod
    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        """The rows of `group_status` of these groups."""

    @abstractmethod
    def group(self, group_id: str) -> Row | None:
        """The row of `groups`; None for a group without one."""

    @abstractmethod
    def lag(self, group_id: str) -> list[Row]:
        """The rows of `lag`, each with `status` and `rule` of the partition."""

    @abstractmethod
    def members(self, group_id: str) -> list[Row]:
        """The rows of `members`."""

    def recent_ages(self, groups: Iterable[str], end: datetime) -> pa.Table:
        """Samples of these groups in the hour before `end`: `group_id`, `at`, `lag` and `lag_seconds`, by group and time.

        Other groups may be among them.
        """
        return ages_between(self.query, groups, end - TREND - BEFORE, end)

    @abstractmethod
    def query(self, sql: str) -> pa.Table:
        """The rows of a reading statement over tables and views, with plain strings.

        Raises:
            UsageError: not a reading statement, or the query engine rejects it.
            RemovedState: the rows can no longer be read.
        """

    @abstractmethod
    def reopened(self) -> Query:
        """A query function with the newest rows of `alerts` and `alert_history`, which change without a batch."""


@dataclass(frozen=True, eq=False)
class Moment:
    """A cluster at a time. A request uses one moment, so that it shows one batch.

    - `at`: the time that the page shows: the requested one, otherwise that of the newest sample or of the batch.
    - `is_newest`: the batch is the newest one that is loaded.
    - `teams`: the owners of groups.
    - `age`: the age of the newest batch at the time that the page shows; None for an earlier batch.
    - `changes_since`: changes of groups, members and offsets since an earlier time, with the columns of `query.diff.SCHEMA`.
      Raises UsageError without a batch at that time, and RemovedState.
    """

    cluster: str
    at: datetime
    is_newest: bool
    state: BatchState
    changes_since: Callable[[datetime], pa.Table]
    teams: Teams = field(default_factory=Teams)
    age: DataAge | None = None

    @property
    def batch(self) -> Batch:
        """The batch whose tables are read."""
        return self.state.batch

    @property
    def sampled_at(self) -> datetime | None:
        """Time of the sample of the rows of `lag`; None without one."""
        return self.state.sampled_at

    @property
    def commits_read_until(self) -> datetime:
        """Time until which the lag has the commits; see BatchState."""
        return self.state.commits_read_until

    @property
    def is_limited(self) -> bool:
        """True if rows of groups are left out that the viewer may not see."""
        return self.state.is_limited

    @property
    def is_derived(self) -> bool:
        """True if the tables of the batch were removed; see BatchState."""
        return self.state.is_derived

    def summaries(self) -> pa.Table:
        """One row per group, sorted by name, with the columns of `summary_schema`. At a past time the status may be null."""
        return self.state.summaries()

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        """The rows of `group_status` of these groups, by group; computed from the histories for a past time."""
        return self.state.statuses(groups)

    def group(self, group_id: str) -> Row | None:
        """The row of `groups`; None for a group without one."""
        return self.state.group(group_id)

    def lag(self, group_id: str) -> list[Row]:
        """The rows of `lag` of a group, by topic and partition, each with `status` and `rule` of the partition."""
        return self.state.lag(group_id)

    def members(self, group_id: str) -> list[Row]:
        """The rows of `members` of a group, by member id."""
        return self.state.members(group_id)

    def recent_ages(self, groups: Iterable[str]) -> pa.Table:
        """Samples of these groups in the last hour; see BatchState."""
        return self.state.recent_ages(groups, self.at)

    def query(self, sql: str) -> pa.Table:
        """The rows of a reading statement over tables and views at this batch, with plain strings; see BatchState."""
        return self.state.query(sql)

    def reopened(self) -> Query:
        """A query function with the newest rows of `alerts` and `alert_history`, which change without a batch."""
        return self.state.reopened()
