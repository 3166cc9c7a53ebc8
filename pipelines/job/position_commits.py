"""`--group-id`: the position of the job in the log, committed as a consumer group, so that tools of Kafka show its lag.

These commits are records of the log that the job reads. A batch of nothing else is not committed: otherwise each batch of a job
on an idle cluster would cause the next one.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import NAMESPACE_URL, uuid4, uuid5

from coordinator_core.log.errors import LogMisconfigured
from coordinator_core.log.partitioner import partition_for
from pipelines.group_commits.committer import GroupCommitter
from pipelines.group_commits.finished_batch import FinishedBatch
from pipelines.group_commits.kafka_group import KafkaGroup
from pipelines.job.run_options import RunOptions
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress
from pipelines.source.ranges import Offsets
from pipelines.tables.store import Batch

#: What waits at the end of a run is committed for at most this time.
_FLUSH_SECONDS = 5.0


class OwnRecords:
    """Tells batches of the job's own commits from others. `reached` is the position of the tables before the first batch."""

    def __init__(self, group_id: str, reached: Offsets) -> None:
        self._group_id, self._reached, self._read = group_id, dict(reached), 0

    def are_all_of(self, next_offsets: Offsets, appended: int) -> bool:
        """True if a batch up to these offsets has own commits only. `appended`: offsets that the job has committed so far."""
        home = partition_for(self._group_id, len(next_offsets)) if next_offsets else 0
        advances = {
            partition: offset - self._reached.get(partition, 0)
            for partition, offset in next_offsets.items()
            if offset != self._reached.get(partition, 0)
        }
        unread = appended - self._read
        is_own = set(advances) <= {home} and advances.get(home, 0) <= unread
        self._read += min(unread, advances.get(home, 0))
        self._reached = dict(next_offsets)
        return is_own


class PositionCommits:
    """Commits the position of each batch, in a thread of its own. Nothing that fails there reaches the job."""

    def __init__(self, topic: str, query_id: str, committer: GroupCommitter, own: OwnRecords) -> None:
        self._topic, self._query_id, self._run_id = topic, query_id, str(uuid4())
        self._committer, self._own = committer, own

    def batch_applied(self, batch: Batch) -> None:
        """Commit where a batch ends, unless it has read own commits only."""
        if not self._own.are_all_of(batch.next_offsets, self._committer.state.commits):
            offsets: Mapping[tuple[str, int], int] = {
                (self._topic, partition): offset for partition, offset in batch.next_offsets.items()
            }
            self._committer.offer(FinishedBatch(self._query_id, self._run_id, "", batch.batch_id, offsets))


@contextmanager
def position_commits(options: RunOptions, last: Batch | None, progress: Progress) -> Iterator[PositionCommits | None]:
    """Commit the positions of a run until it ends; None without a group id.

    Raises:
        UsageError: the source is not a topic, or confluent-kafka or one of its options is missing or invalid.
    """
    if not options.group_id:
        yield None
        return
    address = options.address
    if not address.topic:
        raise UsageError(f"--group-id {options.group_id} is for kafka:// and spark-kafka://: {address} has no offsets of a topic")
    # the client libraries are slow to import, and most runs commit nothing
    from coordinator_core.sources.kafka_options import parse_address
    from coordinator_core.topic_log.client_options import client_options

    try:
        client = client_options(parse_address(address.kafka_address).servers, options.kafka, time.time)
    except LogMisconfigured as error:
        raise UsageError(str(error)) from error
    committer = GroupCommitter(KafkaGroup(options.group_id, client), progress)
    own = OwnRecords(options.group_id, {} if last is None else last.next_offsets)
    try:
        yield PositionCommits(address.topic, str(uuid5(NAMESPACE_URL, options.tables)), committer, own)
    finally:
        committer.close(_FLUSH_SECONDS)
