"""Requests of a poll in pieces, bounded in keys and in flight. A broker that does not answer is silent until the poll ends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.sources.kafka_connection import KafkaConnection, RequestFor

#: Requests to a broker that wait for their answers at the same time; the client library allows five.
_IN_FLIGHT = 4

#: The brokers that did not answer, with the reason.
SilentNodes = dict[int, str]
#: Called with a broker, its answer or error, and the keys that were asked about.
_Received = Callable[[int, Any, Sequence[str]], None]


def keys_by_node(nodes: Mapping[str, int], silent: SilentNodes) -> dict[int, list[str]]:
    """The keys of each broker that is not silent, in the order of `nodes`: key → broker."""
    found: dict[int, list[str]] = {}
    for key, node in nodes.items():
        if node not in silent:
            found.setdefault(node, []).append(key)
    return found


def pieces(keys: Sequence[str], size: int) -> Iterator[list[str]]:
    """Keys in lists of at most `size`."""
    return (list(keys[first : first + size]) for first in range(0, len(keys), size))


def has_answered(node: int, answer: Any, silent: SilentNodes) -> bool:
    """False for the error of a broker that does not answer, which is noted in `silent`; raises any other error."""
    if not isinstance(answer, LogError):
        return True
    if not isinstance(answer, LogUnreachable):
        raise answer
    silent[node] = str(answer)
    return False


def send_pieces(
    connection: KafkaConnection,
    parts: Mapping[int, Sequence[Sequence[str]]],
    request: Callable[[Sequence[str]], RequestFor],
    received: _Received,
    silent: SilentNodes,
) -> None:
    """Send a request for each piece of keys of each broker, and pass on the answers in the order of the pieces."""
    rounds = max(map(len, parts.values()), default=0)
    for first in range(0, rounds, _IN_FLIGHT):
        window = [
            {node: request(some[number]) for node, some in parts.items() if number < len(some) and node not in silent}
            for number in range(first, min(first + _IN_FLIGHT, rounds))
        ]

        def take(number: int, answers: Mapping[int, Any], first: int = first) -> None:
            for node, answer in answers.items():
                received(node, answer, parts[node][first + number])

        connection.send_in_order(window, take)
