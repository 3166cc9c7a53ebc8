"""End offset samples: the answers of a leader to Metadata and ListOffsets for one topic partition. Times in ms.

A sample holds for one unknown instant between `asked_at_ms` and `answered_at_ms`. `log_end` is the high watermark (isolation
level read_uncommitted): a consumer can read the records below it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndOffsetSample:
    """One row of `end_offsets`. A failed sample has a `reason` and no offsets; all others have a `log_end`.

    - `topic_id`: as Kafka prints it; None for brokers before 2.8.
    - `log_start`: first offset that is still in the log; None if unknown.
    - `last_stable`: last stable offset; None if it was not requested.
    - `leader_epoch`: epoch of the leader that answered; None if the broker sent none.
    - `reason`: why there are no offsets, such as `topic_authorization_failed`.

    Raises ValueError for an answer before its request, and for a sample that has both offsets and a reason, or neither.
    """

    topic_id: str | None
    topic: str
    partition: int
    asked_at_ms: int
    answered_at_ms: int
    log_start: int | None
    log_end: int | None
    last_stable: int | None = None
    leader_epoch: int | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.answered_at_ms < self.asked_at_ms:
            raise ValueError(f"sample of {self.topic}-{self.partition} answered at {self.answered_at_ms} ms, before its request")
        if (self.reason is None) == (self.log_end is None):
            raise ValueError(f"sample of {self.topic}-{self.partition} needs either a log end or the reason for its absence")

    @property
    def values(self) -> tuple[object, ...]:
        """All fields except the times; a run without change has equal values."""
        return (self.topic_id, self.log_start, self.log_end, self.last_stable, self.leader_epoch, self.reason)
