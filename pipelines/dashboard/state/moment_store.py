"""The moments of all clusters: the newest from memory, earlier ones loaded on request and kept."""

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import pyarrow as pa

from pipelines.dashboard.formatting.times_in_text import age_text
from pipelines.dashboard.state.errors import InvalidRequest, NoBatch, UnknownCluster
from pipelines.dashboard.state.history_state import HistoryState
from pipelines.dashboard.state.moment import BatchState, Moment
from pipelines.dashboard.state.newest_state import NewestState
from pipelines.dashboard.state.old_state import OldState
from pipelines.dashboard.state.past_state import PastState
from pipelines.dashboard.state.query_cache import QueryCache
from pipelines.dashboard.state.recent_ages import NewestAges
from pipelines.dashboard.state.state_cache import StateCache
from pipelines.dashboard.state.summary_times import NewestRebalances
from pipelines.dashboard.state.teams import Teams
from pipelines.metrics.site import Site
from pipelines.query.diff import diff
from pipelines.query.engine import Snapshot, parse_as_of
from pipelines.query.history_snapshot import HistorySnapshot
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.runtime.errors import RemovedState, UsageError
from pipelines.tables.data_age import DataAge
from pipelines.tables.store import Batch, TableStore

#: Batches that are kept: a batch takes a kilobyte.
_KEPT = 1_000

#: Share of the memory for the results of the queries of one moment.
_QUERY_SHARE = 16


class MomentStore:
    """For any number of threads. A request for a past moment that is not kept loads it, and blocks meanwhile."""

    def __init__(self, site: Site, memory_bytes: int, teams: Teams | None = None) -> None:
        """`site`, which is not started yet, loads the newest batches; `memory_bytes` limits what is kept of past ones."""
        self._site = site
        self._teams = teams or Teams()
        self._query_bytes = memory_bytes // _QUERY_SHARE
        self._past: StateCache[PastState | HistoryState] = StateCache(memory_bytes)
        self._lock = threading.Lock()
        self._newest: dict[str, tuple[MemorySnapshot, NewestState]] = {}
        self._rebalances = {cluster: NewestRebalances() for cluster in site.roots}
        self._ages = {cluster: NewestAges() for cluster in site.roots}
        self._batches = {cluster: PastBatches(root) for cluster, root in site.roots.items()}
        site.on_change(self._prepare)

    def clusters(self) -> Sequence[str]:
        """Names of the clusters."""
        return tuple(self._site.roots)

    def moment(self, cluster: str, as_of: str | None = None) -> Moment:
        """The cluster at a batch id or an ISO 8601 time (UTC without zone); now without one.

        Raises:
            UnknownCluster: no such cluster.
            NotLoaded: no batch is loaded yet, or too many past moments are being loaded.
            InvalidRequest: not a batch id or a time, or a batch after the newest one.
            UsageError: no such batch.
            RemovedState: the tables of that time can no longer be read.
        """
        snapshot = self._snapshot(cluster)
        newest = self._newest_state(cluster, snapshot)
        if as_of is None:
            return self._newest_moment(cluster, snapshot.lag_at, newest, self._site.age_of(snapshot))
        wanted = _time_or_batch(as_of)
        if isinstance(wanted, datetime) and wanted.tzinfo is None:
            wanted = wanted.replace(tzinfo=UTC)
        batch = self._batches[cluster].batch(wanted, newest.batch)
        at = wanted if isinstance(wanted, datetime) else batch.finished_at
        if batch.batch_id == newest.batch.batch_id:
            return self._newest_moment(cluster, at, newest, self._site.age_of(snapshot, at))
        state = self._past.state((cluster, batch.batch_id), lambda: self._loaded(cluster, batch, newest.batch))
        return self._moment(cluster, at, state)

    def _newest_moment(self, cluster: str, at: datetime, newest: NewestState, age: DataAge) -> Moment:
        """The newest batch at a time; if it is old then, no status is known."""
        return self._moment(cluster, at, newest if age.text is None else OldState(newest, age_text(age.text, age)), age)

    def _moment(self, cluster: str, at: datetime, state: BatchState, age: DataAge | None = None) -> Moment:
        """`age` is that of the newest batch, None for an earlier one."""

        def changes_since(earlier: datetime) -> pa.Table:
            store = TableStore(self._site.roots[cluster])
            return diff(store, store.batch_as_of(earlier), state.batch)

        return Moment(cluster, at, age is not None, state, changes_since, self._teams, age)

    def _snapshot(self, cluster: str) -> MemorySnapshot:
        state = self._site.states().get(cluster)
        if state is None:
            raise UnknownCluster(f"no cluster {cluster!r}: there are {', '.join(self.clusters())}")
        if state.value is None:
            raise NoBatch(f"cluster {cluster} is not loaded: {state.error or 'the newest batch is being read'}")
        return state.value.snapshot

    def _prepare(self, snapshots: Mapping[str, MemorySnapshot]) -> None:
        """Make in the loading thread what pages have used of an earlier batch."""
        for cluster, snapshot in snapshots.items():
            kept = self._newest.get(cluster)
            if kept is not None and kept[0] is not snapshot:
                self._newest_state(cluster, snapshot).prepare_like(kept[1])

    def _newest_state(self, cluster: str, snapshot: MemorySnapshot) -> NewestState:
        with self._lock:
            kept = self._newest.get(cluster)
            if kept is not None and kept[0] is snapshot:
                return kept[1]
            queries = self._queries(Snapshot(TableStore(self._site.roots[cluster]), snapshot.batch))
            state = NewestState(snapshot, queries, self._rebalances[cluster], self._ages[cluster])
            if kept is None or kept[0].batch.batch_id <= snapshot.batch.batch_id:
                self._newest[cluster] = snapshot, state
            return state

    def _loaded(self, cluster: str, batch: Batch, newest: Batch) -> PastState | HistoryState:
        """The tables at the batch, or, after they were removed, what follows from the histories."""
        store = TableStore(self._site.roots[cluster])
        try:
            return PastState(Snapshot(store, batch), Snapshot(store, newest), self._queries(Snapshot(store, batch)))
        except RemovedState:
            return HistoryState(batch, Snapshot(store, newest), self._queries(HistorySnapshot(store, batch)))

    def _queries(self, snapshot: Snapshot) -> QueryCache:
        return QueryCache(snapshot, self._query_bytes)


def _time_or_batch(as_of: str) -> int | datetime:
    try:
        return parse_as_of(as_of, "as_of")
    except UsageError as error:
        raise InvalidRequest(str(error)) from error


class PastBatches:
    """For any number of threads."""

    def __init__(self, root: str) -> None:
        self._store = TableStore(root)
        self._lock = threading.Lock()
        # of one folder: a rebuild gives the tables other versions
        self._read = lru_cache(_KEPT)(lambda _root, wanted: self._store.batch_as_of(wanted))

    def batch(self, wanted: int | datetime, newest: Batch) -> Batch:
        """The batch of that id, or the newest one at that time, up to `newest`.

        Raises:
            InvalidRequest: the newest batch has a smaller id.
            UsageError: there is none.
        """
        if isinstance(wanted, int) and wanted > newest.batch_id:
            raise InvalidRequest(f"no batch {wanted}: the newest one is {newest.batch_id}")
        if wanted == newest.batch_id or (isinstance(wanted, datetime) and wanted >= newest.finished_at):
            return newest
        # one read at a time: the store keeps the table open, and a second request for the same batch finds it
        with self._lock:
            self._store.follow()
            return self._read(self._store.root, wanted)
