"""What a tombstone of an offset removes, and with it the rest of the transaction rules that separate the loaders."""

from enum import IntEnum


class TombstoneScope(IntEnum):
    """Two loaders, two answers to "which commits does this tombstone remove?"; the numbers are shared with compiled code.

    SCALA (`GroupMetadataManager.doLoadGroupsAndOffsets`): a plain tombstone removes the committed offset and spares pending
    ones, a transactional one removes only its own producer's pending commit. The batch's flag makes a record transactional;
    every control record but COMMIT drops what its producer has pending.

    JAVA (`OffsetMetadataManager.replay`): any tombstone removes the committed offset and every producer's pending commit, at
    once. A producer id makes a record transactional; control types other than COMMIT and ABORT do nothing.
    """

    SCALA = 0
    JAVA = 1
