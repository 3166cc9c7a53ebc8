"""Start offsets and lag of share groups, as their coordinators answer DescribeShareGroupOffsets (KIP-932, KIP-1226).

The start offset of a partition is not a position: records from it on may be acknowledged already. The lag counts those that are
not, so it may be less than the distance of the start offset to the log end.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from coordinator_core.group_polls.bounded_requests import SilentNodes, has_answered, keys_by_node, pieces, send_pieces
from coordinator_core.group_polls.group_answers import CoordinatorFailure
from coordinator_core.group_polls.group_poll import ShareOffset
from coordinator_core.group_polls.group_requests import find_coordinators_request, found_coordinators
from coordinator_core.log.errors import LogError, RequestRejected
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.sources.kafka_connection import KafkaConnection, RequestFor, borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.wire import library

#: Groups of one request.
_LOOKED_UP, _DESCRIBED = 500, 100
#: A coordinator that has moved is looked up once more.
_LOOKUPS = 2
#: No start offset yet, and no lag before DescribeShareGroupOffsets 1 (Kafka 4.2).
_UNKNOWN = -1


class ShareOffsetsReader:
    """Asks about share groups of the cluster of a `kafka://` address. `now_ms` is the clock. For one thread at a time."""

    def __init__(self, address: str, options: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        self._servers = parse_address(address).servers
        self._options = dict(options)
        self._now_ms = now_ms

    def read(self, group_ids: Collection[str]) -> list[ShareOffset]:
        """Ask about all partitions of these groups; the answers are sorted by group, topic and partition.

        A group that its coordinator does not know has no row. Raises LogError if no broker answers.
        """
        with borrowed_connection(self._servers, self._options) as connection:
            return read_share_offsets(connection, group_ids, self._now_ms)


def read_share_offsets(connection: KafkaConnection, group_ids: Collection[str], now_ms: Callable[[], int]) -> list[ShareOffset]:
    """As `ShareOffsetsReader.read`, over a connection."""
    found: dict[str, list[ShareOffset]] = {}
    failed: dict[str, CoordinatorFailure] = {}
    silent: SilentNodes = {}
    todo: Sequence[str] = sorted(group_ids)
    for _ in range(_LOOKUPS):
        nodes = dict(_coordinators(connection, todo, failed))

        def received(node: int, answer: Any, asked: Sequence[str]) -> None:
            # not of a subclass: an authentication that failed is an error of the sample
            if type(answer) is RequestRejected:
                failed.update(dict.fromkeys(asked, CoordinatorFailure(ErrorCode.UNSUPPORTED_VERSION)))
            elif has_answered(node, answer, silent):
                for group in answer.groups or ():
                    if group.error_code:
                        failed[group.group_id] = CoordinatorFailure(group.error_code)
                    else:
                        failed.pop(group.group_id, None)
                        found[group.group_id] = list(_offsets(group, now_ms()))

        parts = {node: list(pieces(names, _DESCRIBED)) for node, names in keys_by_node(nodes, silent).items()}
        send_pieces(connection, parts, _request, received, silent)
        unanswered = [name for name, node in nodes.items() if node in silent and name not in found]
        failed.update(dict.fromkeys(unanswered, CoordinatorFailure(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
        todo = sorted(name for name, failure in failed.items() if failure.is_moving)
    for name, failure in failed.items():
        if failure.code != ErrorCode.GROUP_ID_NOT_FOUND:
            found[name] = [ShareOffset(name, None, None, None, None, None, _name_of(failure), now_ms())]
    return [each for name in sorted(found) for each in found[name]]


def _coordinators(
    connection: KafkaConnection, group_ids: Sequence[str], failed: dict[str, CoordinatorFailure]
) -> Iterator[tuple[str, int]]:
    """The groups with the nodes of their coordinators; those without one are added to `failed`."""
    for some in pieces(group_ids, _LOOKED_UP):
        answer = connection.send_any(find_coordinators_request(some))
        if isinstance(answer, LogError):
            raise answer
        for name, part in found_coordinators(answer, some):
            if part.error_code:
                failed[name] = CoordinatorFailure(part.error_code)
            else:
                yield name, part.node_id


def _request(group_ids: Sequence[str]) -> RequestFor:
    message = library.DescribeShareGroupOffsetsRequest
    groups = [message.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in group_ids]
    return lambda _versions: message(groups=groups)


def _offsets(group: Any, answered_at_ms: int) -> Iterator[ShareOffset]:
    parts: Mapping[tuple[str, int], Any] = {
        (topic.topic_name, part.partition_index): part for topic in group.topics or () for part in topic.partitions or ()
    }
    for (topic, partition), part in sorted(parts.items()):
        name = (group.group_id, topic, partition)
        if part.error_code:
            yield ShareOffset(*name, None, None, None, _name_of(CoordinatorFailure(part.error_code)), answered_at_ms)
        else:
            lag = _known(getattr(part, "lag", None))
            yield ShareOffset(*name, _known(part.start_offset), lag, _known(part.leader_epoch), None, answered_at_ms)


def _known(number: int | None) -> int | None:
    return None if number == _UNKNOWN else number


def _name_of(failure: CoordinatorFailure) -> str:
    """The name of an error as other samples have it."""
    return failure.reason.lower()
