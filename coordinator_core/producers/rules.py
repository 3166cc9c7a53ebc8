"""Differences between broker generations in the checks of a leader, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType

from coordinator_core.producers.entry import REMEMBERED_BATCHES


class ProducerError(IntEnum):
    """Errors of the checks, with the numbers of Kafka's `Errors`."""

    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    TRANSACTION_COORDINATOR_FENCED = 52
    UNKNOWN_PRODUCER_ID = 59


@dataclass(frozen=True, slots=True)
class ProducerRules:
    """Checks of a broker release.

    Attributes:
        remembered_batches: newest batches among which a duplicate is recognized
        unknown_producer: error for an unknown producer whose first sequence is not 0; None: accepted
        marker_only: error for another first sequence than 0 if only a marker of the epoch is known
        completes_empty: a marker without a transaction completes an empty one, which gets a row in the index if aborted
        verifies: a transactional batch needs a verified or an open transaction (KIP-890)
        ongoing_needs_epoch: a transaction is open only for batches of its own epoch
        checks_epoch_first: a smaller epoch is reported before a missing verification
        starts_at_zero: a producer of transaction version 2 without remembered batches must start at sequence 0
        strict_markers: a marker of transaction version 2 needs a greater epoch (KAFKA-19446)
    """

    remembered_batches: int = REMEMBERED_BATCHES
    unknown_producer: ProducerError | None = None
    marker_only: ProducerError = ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER
    completes_empty: bool = False
    verifies: bool = False
    ongoing_needs_epoch: bool = False
    checks_epoch_first: bool = False
    starts_at_zero: bool = False
    strict_markers: bool = False


_0_11 = ProducerRules(remembered_batches=1, unknown_producer=ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER, completes_empty=True)
_1_0 = replace(_0_11, remembered_batches=REMEMBERED_BATCHES, unknown_producer=ProducerError.UNKNOWN_PRODUCER_ID)
_2_1 = replace(_1_0, marker_only=ProducerError.UNKNOWN_PRODUCER_ID)
#: KIP-360.
_2_5 = replace(_2_1, unknown_producer=None, marker_only=ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER)
#: KAFKA-10702.
_2_8 = replace(_2_5, completes_empty=False)
#: KIP-890, part 1.
_3_6 = replace(_2_8, verifies=True)
#: KIP-890, part 2.
_4_0 = replace(_3_6, ongoing_needs_epoch=True)
_4_1 = replace(_4_0, checks_epoch_first=True, starts_at_zero=True)
_4_2 = replace(_4_1, strict_markers=True)

#: First release with these rules → rules.
RULES_SINCE: Mapping[str, ProducerRules] = MappingProxyType(
    {
        "0.11": _0_11,
        "1.0": _1_0,
        "2.1": _2_1,
        "2.5": _2_5,
        "2.8": _2_8,
        "3.6": _3_6,
        "4.0": _4_0,
        "4.1": _4_1,
        "4.2": _4_2,
    }
)
#: Era → rules of the last release of its span. Brokers of the first two eras have no idempotent producers.
RULES: Mapping[str, ProducerRules] = MappingProxyType({"0.9": _0_11, "0.10": _0_11, "1": _1_0, "2": _2_1, "3": _3_6, "4": _4_2})
