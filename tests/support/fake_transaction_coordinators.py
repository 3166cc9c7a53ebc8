"""Transaction coordinators in memory that answer the requests of polls, in the place of `KafkaConnection`."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace as Part
from typing import Any

from fake_coordinators import SILENT
from kafka.protocol.broker_version_data import BrokerVersionData

from coordinator_core.group_polls.transaction_poll import PolledTransaction
from coordinator_core.protocol.error_code import ErrorCode


class FakeTransactionCoordinators:
    """Brokers 1 and 2. `ids`: transactional id → its node and state."""

    def __init__(self, ids: Mapping[str, tuple[int, PolledTransaction]]) -> None:
        self.ids = dict(ids)
        self.silent: set[int] = set()
        self.unlisted: set[str] = set()
        #: Id → the node that lists it, which is not its coordinator any more.
        self.stale: dict[str, int] = {}
        #: Id → the name of its state in the answer, other than that of its state.
        self.labels: dict[str, str] = {}
        #: Name of a request, and the number of ids in it.
        self.sent: list[tuple[str, int]] = []

    def metadata(self, _topics: object) -> Any:
        return Part(brokers=[Part(node_id=node, host="broker", port=9092) for node in (1, 2)], topics=[])

    def send_any(self, request_for: Callable[[Any], Any]) -> Any:
        return self._answer(1, request_for)

    def send_all(self, requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        return {node: self._answer(node, request_for) for node, request_for in requests.items()}

    def send_in_order(self, rounds: Sequence[Mapping[int, Callable[[Any], Any]]], received: Callable[[int, Any], None]) -> None:
        assert len(rounds) <= 4, "requests in flight"
        for number, requests in enumerate(rounds):
            received(number, self.send_all(requests))

    def _answer(self, node: int, request_for: Callable[[Any], Any]) -> Any:
        if node in self.silent:
            return SILENT
        request = request_for(BrokerVersionData((4, 1)))
        match request.name:
            case "ListTransactionsRequest":
                listed = [name for name, (home, _) in self.ids.items() if self.stale.get(name, home) == node]
                return Part(
                    error_code=0,
                    transaction_states=[Part(transactional_id=name) for name in listed if name not in self.unlisted],
                )
            case "FindCoordinatorRequest":
                self.sent.append((request.name, len(request.coordinator_keys)))
                return Part(
                    coordinators=[
                        Part(key=key, node_id=self.ids[key][0] if key in self.ids else 1, error_code=0)
                        for key in request.coordinator_keys
                    ]
                )
            case _:
                self.sent.append((request.name, len(request.transactional_ids)))
                return Part(transaction_states=[self._described(node, name) for name in request.transactional_ids])

    def _described(self, node: int, name: str) -> Any:
        if name not in self.ids:
            return Part(transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        home, found = self.ids[name]
        return Part(
            transactional_id=name,
            error_code=0 if home == node else ErrorCode.NOT_COORDINATOR,
            transaction_state=self.labels.get(name, found.state.label),
            transaction_timeout_ms=found.timeout_ms,
            transaction_start_time_ms=found.start_ms,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            topics=[Part(topic=topic, partitions=list(numbers)) for topic, numbers in found.partitions],
        )
