"""The first poll of transactional ids after a change of the source: an id without an answer is not one that was removed."""

from typing import Any

import pytest
from fake_transaction_coordinators import FakeTransactionCoordinators

from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.group_polls.transaction_poll import PolledTransaction
from coordinator_core.group_polls.transaction_poller import TransactionPoller
from coordinator_core.state.transaction_state import TransactionState
from pipelines.job.new_source_state import first_transactions
from pipelines.runtime.errors import TablesError

_DONE = PolledTransaction(TransactionState.COMPLETE_COMMIT, 8, 2, 60_000, 900, ())


def first_of(brokers: FakeTransactionCoordinators, *known: str) -> tuple[list[str], int]:
    """Ids of the first poll, and the next offset."""
    connection: Any = brokers
    found = first_transactions(TransactionPoller(connection, lambda: 5_000).poll(known), known, 40)
    return [row["transactional_id"] for row in found.reductions[0].transactions.to_pylist()], found.next_offsets[POLLED_PARTITION]


def test_ids_of_the_first_poll_begin_above_all_rows() -> None:
    brokers = FakeTransactionCoordinators({"first": (1, _DONE), "second": (2, _DONE)})
    # the coordinator of an expired id was asked for it by name
    assert first_of(brokers, "first", "expired") == (["first", "second"], 42)


def test_a_silent_coordinator_ends_the_change() -> None:
    brokers = FakeTransactionCoordinators({"first": (1, _DONE), "second": (2, _DONE)})
    brokers.silent = {2}
    with pytest.raises(TablesError, match="'second' has a coordinator that does not answer; the tables are as they were"):
        first_of(brokers, "first", "second")


def test_an_error_about_a_known_id_ends_the_change() -> None:
    brokers = FakeTransactionCoordinators({"first": (1, _DONE), "second": (2, _DONE)})
    brokers.labels = {"second": "Newer"}
    with pytest.raises(TablesError, match="'second' is answered with UNKNOWN_SERVER_ERROR"):
        first_of(brokers, "second")
    assert first_of(brokers, "first")[0] == ["first"]
