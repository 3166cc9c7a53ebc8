"""Polls of the transaction coordinators of a cluster (KIP-664), bounded in ids and in flight.

1. ListTransactions to each broker. An id that the tables know and no list has is asked for by name.
2. FindCoordinator for those ids, and for ids whose coordinator has moved.
3. DescribeTransactions to each coordinator.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.group_polls.bounded_requests import SilentNodes, has_answered, keys_by_node, pieces, send_pieces
from coordinator_core.group_polls.group_answers import CoordinatorFailure
from coordinator_core.group_polls.transaction_poll import PolledTransaction, TransactionPoll
from coordinator_core.log.errors import LogError
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import CoordinatorType
from coordinator_core.sources.kafka_connection import KafkaConnection, RequestFor
from coordinator_core.state.transaction_state import STATES_BY_LABEL, TransactionState
from coordinator_core.wire import library

#: Ids of one request.
_DESCRIBED, _LOOKED_UP = 500, 500
#: A coordinator that has moved is looked up this many times in one poll.
_LOOKUPS = 3
#: KIP-699, of the same release as the other requests: several keys.
_FIND_SEVERAL = 4
_NO_START = -1


@dataclass
class _TransactionAnswers:
    """Answers so far; `coordinators` has the ids that still have to be described."""

    coordinators: dict[str, int] = field(default_factory=dict)
    transactions: dict[str, PolledTransaction] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    failures: dict[str, CoordinatorFailure] = field(default_factory=dict)
    silent: SilentNodes = field(default_factory=dict)


class TransactionPoller:
    """Polls the transactional ids of one cluster. For one thread at a time; `now_ms` is the clock.

    Brokers have the requests since Kafka 3.0. `poll` raises the errors of `KafkaConnection` if no broker answers, or if a broker
    has no version of a request.
    """

    def __init__(self, connection: KafkaConnection, now_ms: Callable[[], int]) -> None:
        self._connection = connection
        self._now_ms = now_ms

    def poll(self, known: Collection[str]) -> TransactionPoll:
        """Ask every coordinator about its ids. `known` are those of the tables."""
        at = _TransactionAnswers()
        nodes = [broker.node_id for broker in self._connection.metadata(()).brokers or ()]
        self._list(nodes, at)
        self._look_up(sorted(set(known) - at.coordinators.keys()), at)
        self._describe(at)
        for _ in range(_LOOKUPS):
            moved = sorted(name for name, failure in at.failures.items() if failure.is_moving)
            for name in moved:
                del at.failures[name]
            self._look_up(moved, at)
            self._describe(at)
        failures = {name: failure.reason for name, failure in at.failures.items()}
        return TransactionPoll(self._now_ms(), at.transactions, frozenset(at.unknown), failures)

    def _list(self, nodes: Collection[int], at: _TransactionAnswers) -> None:
        for node, answer in self._connection.send_all(dict.fromkeys(nodes, _list_request)).items():
            # of a coordinator that is loading, or answers with another error, nothing is known: its ids are asked for by name
            if has_answered(node, answer, at.silent) and not answer.error_code:
                at.coordinators |= {found.transactional_id: node for found in answer.transaction_states or ()}

    def _look_up(self, names: Sequence[str], at: _TransactionAnswers) -> None:
        for some in pieces(names, _LOOKED_UP):
            answer = self._connection.send_any(_lookup_request(some))
            if isinstance(answer, LogError):
                raise answer
            for found in answer.coordinators or ():
                if found.error_code:
                    at.failures[found.key] = CoordinatorFailure(found.error_code)
                else:
                    at.coordinators[found.key] = found.node_id

    def _describe(self, at: _TransactionAnswers) -> None:
        todo, at.coordinators = at.coordinators, {}
        by_node = keys_by_node(dict(sorted(todo.items())), at.silent)

        def received(node: int, answer: Any, _asked: Sequence[str]) -> None:
            if has_answered(node, answer, at.silent):
                for found in answer.transaction_states or ():
                    _settle(found, at)

        parts = {node: list(pieces(names, _DESCRIBED)) for node, names in by_node.items()}
        send_pieces(self._connection, parts, _describe_request, received, at.silent)


def _list_request(_versions: Any) -> Any:
    return library.ListTransactionsRequest(state_filters=[], producer_id_filters=[])


def _lookup_request(names: Sequence[str]) -> RequestFor:
    request: Any = library.FindCoordinatorRequest
    keys, kind = list(names), CoordinatorType.TRANSACTION
    return lambda _versions: request(key_type=kind, coordinator_keys=keys, min_version=_FIND_SEVERAL)


def _describe_request(names: Sequence[str]) -> RequestFor:
    request: Any = library.DescribeTransactionsRequest
    return lambda _versions: request(transactional_ids=list(names))


def _settle(found: Any, at: _TransactionAnswers) -> None:
    name = found.transactional_id
    if found.error_code and found.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        at.failures[name] = CoordinatorFailure(found.error_code)
        return
    state = TransactionState.DEAD if found.error_code else STATES_BY_LABEL.get(found.transaction_state)
    if state is TransactionState.DEAD:
        at.unknown.add(name)
    elif state is not None:
        at.transactions[name] = _polled(found, state)
    else:
        # a state of a later release
        at.failures[name] = CoordinatorFailure(ErrorCode.UNKNOWN_SERVER_ERROR)


def _polled(found: Any, state: TransactionState) -> PolledTransaction:
    """The log has no record of the state in which a coordinator fences a producer: the transaction is open until then."""
    is_idle = state is TransactionState.EMPTY
    return PolledTransaction(
        TransactionState.ONGOING if state is TransactionState.PREPARE_EPOCH_FENCE else state,
        found.producer_id,
        found.producer_epoch,
        found.transaction_timeout_ms,
        _NO_START if is_idle else found.transaction_start_time_ms,
        () if is_idle else tuple(sorted((topic.topic, tuple(sorted(topic.partitions or ()))) for topic in found.topics or ())),
    )
