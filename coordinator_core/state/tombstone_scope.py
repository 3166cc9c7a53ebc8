"""Transaction rules in which the Scala and the Java loader differ, such as the effect of an offset tombstone."""

from enum import IntEnum


class TombstoneScope(IntEnum):
    """Commits that an offset tombstone removes. Compiled code uses the numbers.

    SCALA (`GroupMetadataManager.doLoadGroupsAndOffsets`): a plain tombstone removes the committed offset and no pending
    commit; a transactional one removes only its own producer's pending commit. A record is transactional by the flag of its
    batch. Every control record except COMMIT discards the pending commits of its producer.

    JAVA (`OffsetMetadataManager.replay`): any tombstone removes the committed offset and every producer's pending commit. A
    record is transactional if it has a producer id. Control types other than COMMIT and ABORT have no effect.
    """

    SCALA = 0
    JAVA = 1
