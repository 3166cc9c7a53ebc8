"""Differences of a poll of transactional ids to the state before it, as the reduction of a range of `__transaction_state`.

Silence is not absence: an id changes only if its coordinator answered about it, and it is removed only if its coordinator was
asked for it by name and does not know it. Transitions between two polls are one record, whose counts are those of its state.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.group_polls.transaction_poll import PolledTransaction, TransactionPoll
from coordinator_core.reduction.reduced_transactions import REDUCED_TRANSACTIONS, STATE_FIELDS, TransactionReduction
from coordinator_core.state.transaction_metadata import NO_PRODUCER_ID
from coordinator_core.state.transaction_state import COMPLETE_ABORT, COMPLETE_COMMIT, EMPTY

#: Transactional id → its state.
PolledTransactions = Mapping[str, PolledTransaction]

_UNKNOWN = -1


def apply_transaction_poll(
    before: PolledTransactions, poll: TransactionPoll, start_offset: int
) -> tuple[TransactionReduction, PolledTransactions]:
    """The records of a poll, the first of them at `start_offset`, and the state after it."""
    rows = [
        {**row, "log_offset": start_offset + number, "record_timestamp": poll.answered_at_ms}
        for number, row in enumerate(_differences(before, poll))
    ]
    after = {name: found for name, found in before.items() if name not in poll.unknown} | dict(poll.transactions)
    table = pa.Table.from_pylist(rows, REDUCED_TRANSACTIONS)
    return TransactionReduction(POLLED_PARTITION, len(rows), table, (), ()), after


def _differences(before: PolledTransactions, poll: TransactionPoll) -> Iterator[dict[str, Any]]:
    for name in sorted(poll.transactions.keys() | poll.unknown & before.keys()):
        found = poll.transactions.get(name)
        if found is None:
            yield {"transactional_id": name, **dict.fromkeys(STATE_FIELDS), "partitions": [], **_counts(None)}
        elif found != before.get(name):
            yield {
                "transactional_id": name,
                "state": found.state,
                "producer_id": found.producer_id,
                "producer_epoch": found.producer_epoch,
                "timeout_ms": found.timeout_ms,
                "start_ms": found.start_ms,
                "last_update_ms": _UNKNOWN,
                "previous_producer_id": NO_PRODUCER_ID,
                "next_producer_id": NO_PRODUCER_ID,
                "client_transaction_version": _UNKNOWN,
                "partitions": [{"topic": topic, "partitions": list(numbers)} for topic, numbers in found.partitions],
                **_counts(found),
            }


def _counts(found: PolledTransaction | None) -> dict[str, int]:
    state = None if found is None else found.state
    counted = {"initializations": EMPTY, "commits": COMPLETE_COMMIT, "aborts": COMPLETE_ABORT}
    return {"records": 1, **{name: int(state is each) for name, each in counted.items()}}
