"""The thread that commits the finished batches of one query: the newest batch counts, and nothing reaches the query."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pipelines.group_commits.commit_rules import Place, StoredCommit, commit_metadata, plan_commits
from pipelines.group_commits.finished_batch import FinishedBatch
from pipelines.group_commits.kafka_group import CommitFailed, GroupIsLive

#: Brokers remove commits of a group without members after `offsets.retention.minutes`, seven days by default.
_RENEW_SECONDS = 86_400.0
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 0.5, 60.0


class CommittedGroup(Protocol):
    """`KafkaGroup`."""

    group_id: str

    def stored(self, places: Collection[Place]) -> dict[Place, StoredCommit]:
        """The commits of these partitions."""
        ...

    def commit(self, offsets: Mapping[Place, int], metadata: str) -> None:
        """Commit offsets."""
        ...

    def close(self) -> None:
        """End the client."""
        ...


@dataclass(frozen=True, slots=True)
class CommitState:
    """How far the commits of a group are.

    Attributes:
        batch_id: newest batch whose offsets the group has; None before the first one
        committed_at: time of its commit, in seconds since 1970
        commits: offsets that were committed so far, one per partition of a commit
        failures: requests that failed so far
        refusal: why nothing is committed any more; "" while commits are made
    """

    batch_id: int | None = None
    committed_at: float | None = None
    commits: int = 0
    failures: int = 0
    refusal: str = ""


class GroupCommitter:
    """Commits the newest batch that was offered, in a thread of its own. `report` gets one line per problem.

    A request that fails is repeated after 0.5 s, 1 s … at most 60 s. A refusal ends the commits.
    """

    def __init__(
        self,
        group: CommittedGroup,
        report: Callable[[str], None],
        renew_seconds: float = _RENEW_SECONDS,
        retry_seconds: float = _FIRST_RETRY_SECONDS,
    ) -> None:
        self._group, self._report = group, report
        self._renew_seconds, self._retry_seconds = renew_seconds, retry_seconds
        self._changed = threading.Condition()
        self._newest: FinishedBatch | None = None
        self._waiting: FinishedBatch | None = None
        self._is_closed = self._has_ended = False
        self._state = CommitState()
        self._committed: set[Place] = set()
        self._behind: set[Place] = set()
        self._last_reason = ""
        self._thread = threading.Thread(target=self._run, name=f"commits of {group.group_id}", daemon=True)
        self._thread.start()

    @property
    def state(self) -> CommitState:
        """How far the commits are."""
        with self._changed:
            return self._state

    def offer(self, batch: FinishedBatch) -> None:
        """Commit this batch instead of one that still waits, unless a newer one of its run was offered. Does not block."""
        with self._changed:
            if self._state.refusal or self._is_closed or _is_newer(self._newest, batch):
                return
            self._newest = self._waiting = batch
            self._has_ended = False
            self._changed.notify_all()

    def query_ended(self) -> None:
        """Commit what waits, and renew nothing: the offsets of a query that has ended expire as those of a consumer."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until nothing waits; False if that took too long or commits are refused."""
        with self._changed:
            is_done = self._changed.wait_for(lambda: self._waiting is None or bool(self._state.refusal), seconds)
            return is_done and not self._state.refusal

    def close(self, seconds: float) -> bool:
        """Commit what waits, for at most this time, and end the thread. The result is that of `flush`."""
        is_done = self.flush(seconds)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(seconds)
        return is_done

    def _run(self) -> None:
        try:
            self._commit_batches()
        finally:
            self._group.close()

    def _commit_batches(self) -> None:
        last: FinishedBatch | None = None
        retry = self._retry_seconds
        while (batch := self._next(last)) is not None:
            is_renewal = batch is last
            try:
                self._commit(batch, is_renewal)
            except GroupIsLive as error:
                self._refuse(str(error))
                return
            except CommitFailed as error:
                self._failed(str(error), batch)
                self._wait(retry)
                retry = min(2 * retry, _LAST_RETRY_SECONDS)
            except Exception as error:
                # whatever happens here, the query continues
                self._refuse(f"{type(error).__name__}: {error}")
                return
            else:
                last, retry = batch, self._retry_seconds
                self._settled(batch)
            if self.state.refusal:
                return

    def _next(self, last: FinishedBatch | None) -> FinishedBatch | None:
        """The batch to commit next, or the last one again when it is due; None after `close`."""
        with self._changed:
            while not self._is_closed:
                if self._waiting is not None:
                    return self._waiting
                seconds = None if last is None or self._has_ended else self._renew_seconds
                if not self._changed.wait(seconds) and not self._has_ended:
                    return last
            return None

    def _commit(self, batch: FinishedBatch, renew: bool) -> None:
        plan = plan_commits(batch, self._group.stored(batch.offsets), self._committed, renew)
        if plan.refusal:
            self._refuse(plan.refusal)
            return
        if new := sorted(plan.behind.keys() - self._behind):
            topic, partition = new[0]
            self._say(
                f"batch {batch.batch_id} ends before {len(new)} committed offsets, such as that of {topic}-{partition}: "
                "they stay until the query has passed them"
            )
        self._behind = set(plan.behind)
        if plan.commits:
            self._group.commit(plan.commits, commit_metadata(batch))
            self._committed |= plan.commits.keys()
            with self._changed:
                self._state = replace(self._state, commits=self._state.commits + len(plan.commits))

    def _settled(self, batch: FinishedBatch) -> None:
        with self._changed:
            if self._waiting is batch:
                self._waiting = None
            if not self._state.refusal:
                self._state = replace(self._state, batch_id=batch.batch_id, committed_at=time.time())
            self._changed.notify_all()
        self._last_reason = ""

    def _failed(self, reason: str, batch: FinishedBatch) -> None:
        with self._changed:
            if self._waiting is None:
                self._waiting = batch  # a renewal, which is still due
            self._state = replace(self._state, failures=self._state.failures + 1)
        if reason != self._last_reason:
            self._say(f"not committed, and tried again: {reason}")
        self._last_reason = reason

    def _refuse(self, reason: str) -> None:
        with self._changed:
            self._state = replace(self._state, refusal=reason)
            self._waiting = None
            self._changed.notify_all()
        self._say(f"no offsets are committed any more: {reason}")

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)

    def _say(self, line: str) -> None:
        self._report(f"group {self._group.group_id!r}: {line}")


def _is_newer(known: FinishedBatch | None, batch: FinishedBatch) -> bool:
    return known is not None and known.run_id == batch.run_id and known.batch_id > batch.batch_id
