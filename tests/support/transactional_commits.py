"""Offsets in transactions without a transaction coordinator: the test sends the markers."""

from collections.abc import Iterable
from typing import Any

from kafka.protocol.producer.transaction import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol_connection import ProtocolConnection

from coordinator_core.log.partitioner import partition_for

#: The last version that does not involve a transaction coordinator (KIP-890).
_COMMIT_VERSION = 3
_MARKER_VERSION = 1
_COORDINATOR_EPOCH = 5


class TransactionalCommits:
    """One producer that commits offsets of one group; use it in a `with`. The topic has `partitions`."""

    def __init__(self, bootstrap: str, group: str, producer_id: int, *, partitions: int = 4, producer_epoch: int = 2) -> None:
        self._group = group
        self._producer = (producer_id, producer_epoch)
        self._partition = partition_for(group, partitions)
        self._connection = ProtocolConnection(bootstrap, "producer")

    def __enter__(self) -> "TransactionalCommits":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def commit(self, offsets: Iterable[tuple[str, int, int, int, str | None]]) -> None:
        """Commit (topic, partition, offset, leader epoch, metadata)."""
        assert self.commit_errors(offsets, self._producer[1]) == {0}

    def commit_errors(self, offsets: Iterable[tuple[str, int, int, int, str | None]], producer_epoch: int) -> set[int]:
        """The errors of a commit with this epoch."""
        topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        topics: dict[str, list[Any]] = {}
        for topic, partition, offset, leader_epoch, metadata in offsets:
            topics.setdefault(topic, []).append(
                topic_class.TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=f"of-{self._group}",
            group_id=self._group,
            producer_id=self._producer[0],
            producer_epoch=producer_epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[topic_class(name=name, partitions=partitions) for name, partitions in topics.items()],
        )
        answer = self._connection.request(request, TxnOffsetCommitResponse, _COMMIT_VERSION)
        return {each.error_code for topic in answer.topics for each in topic.partitions}

    def end(self, *, committed: bool) -> None:
        """Write the marker of the transaction."""
        assert self.marker_error(committed=committed) == 0

    def marker_error(
        self, *, committed: bool, producer_epoch: int | None = None, coordinator_epoch: int = _COORDINATOR_EPOCH
    ) -> int:
        """The error of a marker with these epochs."""
        marker_class = WriteTxnMarkersRequest.WritableTxnMarker
        topic = marker_class.WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=[self._partition])
        marker = marker_class(
            producer_id=self._producer[0],
            producer_epoch=self._producer[1] if producer_epoch is None else producer_epoch,
            transaction_result=committed,
            topics=[topic],
            coordinator_epoch=coordinator_epoch,
        )
        answer = self._connection.request(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, _MARKER_VERSION)
        (error,) = (each.error_code for found in answer.markers for topic in found.topics for each in topic.partitions)
        return int(error)
