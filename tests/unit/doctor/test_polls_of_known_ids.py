"""`grouplake doctor` about transactional ids of the tables that a coordinator does not describe."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fake_transaction_coordinators import FakeTransactionCoordinators

from coordinator_core.group_polls.transaction_poll import PolledTransaction
from coordinator_core.state.era import Era
from coordinator_core.state.transaction_state import TransactionState
from pipelines.doctor import group_requests
from pipelines.doctor.finding import Severity
from pipelines.doctor.subject import Subject
from pipelines.runtime.configuration import load_configuration
from pipelines.source.address import parse_address

_FRESH = PolledTransaction(TransactionState.EMPTY, 9, 0, 60_000, -1, ())


def test_ids_of_the_tables_are_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = FakeTransactionCoordinators({"listed": (1, _FRESH), "refused": (2, _FRESH)})
    brokers.unlisted, brokers.labels = {"refused"}, {"refused": "Newer"}

    @contextmanager
    def connection(*_: object) -> Iterator[Any]:
        yield brokers

    monkeypatch.setattr(group_requests, "borrowed_connection", connection)
    address = parse_address("kafka-groups://broker:9092")
    subject = Subject(load_configuration(None), Era.named("4"), 0, lambda: 5_000, address, address)
    found = [(finding.mark, finding.found) for finding in group_requests.poll_transactions(subject)]
    assert found == [(Severity.OK, "1 transactional ids may be described")]
    # a cached property
    subject.__dict__["transactional_ids"] = ["listed", "refused"]
    refused, described = group_requests.poll_transactions(subject)
    assert (described.mark, described.found) == (Severity.OK, "1 transactional ids may be described")
    assert refused.mark is Severity.WARNING
    assert refused.found == "1 transactional ids are answered with an error, such as 'refused': UNKNOWN_SERVER_ERROR"
    assert "--transactional-id" in refused.remedy
