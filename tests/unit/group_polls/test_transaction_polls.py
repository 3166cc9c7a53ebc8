"""Polls of transactional ids: what the coordinators answer, and what becomes a record."""

from typing import Any

import pytest
from fake_transaction_coordinators import FakeTransactionCoordinators
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.group_polls.transaction_poll import PolledTransaction, TransactionPoll
from coordinator_core.group_polls.transaction_poll_fold import PolledTransactions, apply_transaction_poll
from coordinator_core.group_polls.transaction_poller import TransactionPoller
from coordinator_core.state.transaction_state import TransactionState

OPEN = PolledTransaction(TransactionState.ONGOING, 7, 0, 60_000, 1_000, (("__consumer_offsets", (3,)), ("orders", (0, 1))))
DONE = PolledTransaction(TransactionState.COMPLETE_COMMIT, 8, 2, 60_000, 900, ())
FRESH = PolledTransaction(TransactionState.EMPTY, 9, 0, 60_000, -1, ())


def polled(brokers: FakeTransactionCoordinators, *known: str) -> TransactionPoll:
    connection: Any = brokers
    return TransactionPoller(connection, lambda: 5_000).poll(known)


def test_ids_of_all_coordinators_are_described() -> None:
    found = polled(FakeTransactionCoordinators({"open": (1, OPEN), "done": (2, DONE), "fresh": (2, FRESH)}))
    assert found.transactions == {"open": OPEN, "done": DONE, "fresh": FRESH}
    assert (found.answered_at_ms, found.unknown, found.failures) == (5_000, frozenset(), {})


def test_an_id_that_no_list_has_is_asked_for_by_name() -> None:
    brokers = FakeTransactionCoordinators({"open": (2, OPEN)})
    brokers.unlisted = {"open"}
    found = polled(brokers, "open", "expired")
    assert (found.transactions, set(found.unknown)) == ({"open": OPEN}, {"expired"})


def test_a_coordinator_of_transactions_that_has_moved_is_looked_up() -> None:
    brokers = FakeTransactionCoordinators({"moved": (2, OPEN)})
    brokers.stale = {"moved": 1}
    found = polled(brokers)
    assert (found.transactions, found.failures) == ({"moved": OPEN}, {})


def test_ids_of_a_silent_broker_are_in_no_answer() -> None:
    brokers = FakeTransactionCoordinators({"open": (1, OPEN), "done": (2, DONE)})
    brokers.silent = {2}
    found = polled(brokers, "open", "done")
    assert (found.transactions, found.unknown, found.failures) == ({"open": OPEN}, frozenset(), {})


def test_the_coordinator_fences_a_producer_in_an_open_transaction() -> None:
    fencing = OPEN._replace(state=TransactionState.PREPARE_EPOCH_FENCE)
    assert polled(FakeTransactionCoordinators({"open": (1, fencing)})).transactions == {"open": OPEN}


def test_requests_are_bounded_in_ids() -> None:
    brokers = FakeTransactionCoordinators({f"id-{number}": (1, FRESH) for number in range(2_600)})
    assert len(polled(brokers).transactions) == 2_600
    assert max(count for _, count in brokers.sent) == 500


def test_a_difference_is_a_record_with_the_counts_of_its_state() -> None:
    poll = TransactionPoll(5_000, {"done": DONE, "fresh": FRESH, "open": OPEN}, frozenset({"expired", "never"}))
    before = {"expired": DONE, "fresh": FRESH, "open": FRESH}
    reduction, after = apply_transaction_poll(before, poll, 40)
    rows = reduction.transactions.to_pylist()
    assert [(row["transactional_id"], row["state"], row["log_offset"]) for row in rows] == [
        ("done", 4, 40),
        ("expired", None, 41),
        ("open", 1, 42),
    ]
    assert [tuple(row[name] for name in ("records", "initializations", "commits", "aborts")) for row in rows] == [
        (1, 0, 1, 0),
        (1, 0, 0, 0),
        (1, 0, 0, 0),
    ]
    assert rows[2]["partitions"] == [
        {"topic": "__consumer_offsets", "partitions": [3]},
        {"topic": "orders", "partitions": [0, 1]},
    ]
    # unknown, not invented
    assert {rows[2][name] for name in ("last_update_ms", "previous_producer_id", "client_transaction_version")} == {-1}
    assert (reduction.partition, reduction.records_read) == (-1, 3)
    assert after == {"done": DONE, "fresh": FRESH, "open": OPEN}


_states = st.dictionaries(st.sampled_from("abc"), st.sampled_from([OPEN, DONE, FRESH]))


@given(_states, _states, st.sets(st.sampled_from("abc")))
def test_ids_without_an_answer_stay_as_they_are(before: PolledTransactions, now: PolledTransactions, silent: set[str]) -> None:
    answered = {name: found for name, found in now.items() if name not in silent}
    poll = TransactionPoll(1, answered, frozenset(before.keys() - now.keys() - silent))
    reduction, after = apply_transaction_poll(before, poll, 0)
    kept = {name: before[name] for name in silent & before.keys()}
    assert after == kept | answered
    changed = {name for name in "abc" if before.get(name) != after.get(name)}
    assert set(reduction.transactions["transactional_id"].to_pylist()) == changed
    assert apply_transaction_poll(after, poll, 9)[0].records_read == 0


@pytest.mark.parametrize(
    ("label", "unknown", "failures"), [("Dead", {"open"}, {}), ("Newer", set(), {"open": "UNKNOWN_SERVER_ERROR"})]
)
def test_a_state_that_no_log_has_is_no_state(label: str, unknown: set[str], failures: dict[str, str]) -> None:
    brokers = FakeTransactionCoordinators({"open": (1, OPEN)})
    brokers.labels = {"open": label}
    found = polled(brokers)
    assert (dict(found.transactions), set(found.unknown), found.failures) == ({}, unknown, failures)
