"""Polls of a cluster: rounds of requests to its brokers, bounded in groups and in flight.

1. Metadata: the brokers, and the names of topic ids.
2. ListGroups to each broker. A group that the tables know and no list has is asked for by name.
3. FindCoordinator for those groups, and for groups whose coordinator has moved.
4. DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe, each about the groups of its type, then
   OffsetFetch with all topics, to each coordinator.
5. OffsetFetch by name, for partitions whose commit is not in the answer any more: without the ACL Describe on a topic, brokers
   leave it out in silence.

Offsets are requested last, so that they are of a time near the end of the poll. Brokers before 3.0 are asked about one group in
each request of steps 3 to 5 other than DescribeGroups.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.group_polls.bounded_requests import SilentNodes, has_answered, keys_by_node, pieces, send_pieces
from coordinator_core.group_polls.group_answers import (
    CoordinatorFailure,
    FetchedOffsets,
    classic_group_answer,
    consumer_group_answer,
    fetched_offsets,
    share_group_answer,
    streams_group_answer,
)
from coordinator_core.group_polls.group_poll import GroupAnswer, GroupPoll, PolledGroup, TopicPartitionKey
from coordinator_core.group_polls.group_requests import (
    all_offsets_request,
    describe_classic_request,
    describe_request,
    find_coordinators_request,
    found_coordinators,
    list_groups_request,
    named_offsets_request,
    offsets_of_groups,
    takes_several,
)
from coordinator_core.log.errors import LogError, RequestRejected
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.sources.kafka_connection import KafkaConnection, RequestFor
from coordinator_core.sources.kafka_topic import topic_ids_from
from coordinator_core.wire import library

#: Groups of one request.
_DESCRIBED, _LOOKED_UP, _FETCHED = 100, 500, 100
#: Committed offsets that one answer is expected to have at most; a group that is new to the tables counts as `_NEW_GROUP`.
_OFFSETS_PER_ANSWER, _NEW_GROUP = 100_000, 1_000
#: A coordinator that has moved is looked up this many times in one poll.
_LOOKUPS = 3

_Parse = Callable[[Any], GroupAnswer | CoordinatorFailure | None]
#: Types of groups that are read, in the order in which a group of unknown type is described: the request, and its answer.
_DESCRIPTIONS: Mapping[str, tuple[Callable[[Sequence[str]], RequestFor], _Parse]] = {
    "classic": (describe_classic_request, classic_group_answer),
    "consumer": (describe_request(library.ConsumerGroupDescribeRequest), consumer_group_answer),
    "share": (describe_request(library.ShareGroupDescribeRequest), share_group_answer),
    "streams": (describe_request(library.StreamsGroupDescribeRequest), streams_group_answer),
}
_UNKNOWN_TYPE, _CLASSIC = "", "classic"

#: Names of the groups that the tables know, with their partitions that have a commit.
KnownOffsets = Mapping[str, Collection[TopicPartitionKey]]
#: Called with an answer and the groups that were asked about.
_Take = Callable[[Any, Sequence[str]], None]
_NO_ANSWER = object()
_NOT_ENABLED = CoordinatorFailure(ErrorCode.UNSUPPORTED_VERSION)


@dataclass
class _Progress:
    """Answers so far.

    `coordinators` has the groups that still have to be asked, `types` the type of a group if it is known, and `one_by_one` the
    brokers before 3.0.
    """

    coordinators: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, GroupAnswer | None] = field(default_factory=dict)
    offsets: dict[str, FetchedOffsets] = field(default_factory=dict)
    failures: dict[str, CoordinatorFailure] = field(default_factory=dict)
    silent: SilentNodes = field(default_factory=dict)
    one_by_one: set[int] = field(default_factory=set)


class GroupPoller:
    """Polls the groups of one cluster. For one thread at a time; `now_ms` is the clock, `reads` selects groups by name.

    Every method raises the errors of `KafkaConnection` if no broker answers, or if none has a version of a request.
    """

    def __init__(
        self, connection: KafkaConnection, now_ms: Callable[[], int], reads: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._connection = connection
        self._now_ms = now_ms
        self._reads = reads
        #: Types of groups that this version does not read, with an example of each; for one line of the caller.
        self.unread_types: dict[str, str] = {}

    def poll(self, known: KnownOffsets) -> GroupPoll:
        """Ask every coordinator about its groups. `known` are the groups of the tables, with the partitions of their offsets."""
        asked_at_ms = self._now_ms()
        metadata = self._connection.metadata(None)
        nodes = {broker.node_id: f"{broker.host}:{broker.port}" for broker in metadata.brokers or ()}
        at = _Progress()
        self._list(nodes, at)
        unlisted = sorted(known.keys() - at.coordinators.keys() - at.failures.keys())
        self._look_up(unlisted, nodes.keys(), at)
        self._ask(at, known)
        for _ in range(_LOOKUPS):
            moved = sorted(group_id for group_id, failure in at.failures.items() if failure.is_moving)
            for group_id in moved:
                del at.failures[group_id]
            self._look_up(moved, nodes.keys(), at)
            self._ask(at, known)
        return GroupPoll(
            asked_at_ms,
            self._now_ms(),
            dict(_polled_groups(at)),
            {group_id: failure.reason for group_id, failure in at.failures.items()},
            {nodes.get(node, str(node)): reason for node, reason in at.silent.items()},
            topic_ids_from(metadata),
            frozenset(
                key.topic
                for found in at.offsets.values()
                for key, code in found.failed.items()
                if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            ),
        )

    def _list(self, nodes: Collection[int], at: _Progress) -> None:
        def request(node: int) -> RequestFor:
            return list_groups_request(lambda versions: None if takes_several(versions) else at.one_by_one.add(node))

        answers = self._connection.send_all({node: request(node) for node in nodes})
        for node, answer in answers.items():
            if not has_answered(node, answer, at.silent):
                continue
            if answer.error_code:
                at.silent[node] = CoordinatorFailure(answer.error_code).reason
            for group in answer.groups or ():
                if not self._reads(group.group_id):
                    continue
                kind = (getattr(group, "group_type", "") or "").lower()
                if kind != _UNKNOWN_TYPE and kind not in _DESCRIPTIONS:
                    self.unread_types.setdefault(kind, group.group_id)
                    continue
                at.coordinators[group.group_id] = node
                at.types[group.group_id] = kind

    def _look_up(self, group_ids: Sequence[str], nodes: Set[int], at: _Progress) -> None:
        def take(answer: Any, asked: Sequence[str]) -> None:
            for group_id, found in found_coordinators(answer, asked):
                if found.error_code:
                    at.failures[group_id] = CoordinatorFailure(found.error_code)
                else:
                    at.coordinators[group_id] = found.node_id

        if at.one_by_one:
            # many requests: in parallel, to all brokers
            answering = sorted(nodes - at.silent.keys())
            todo = {group_id: answering[number % len(answering)] for number, group_id in enumerate(group_ids) if answering}
            self._send(todo, find_coordinators_request, _by_count(_LOOKED_UP), take, at)
            return
        for some in pieces(group_ids, _LOOKED_UP):
            answer = self._connection.send_any(find_coordinators_request(some))
            if isinstance(answer, LogError):
                raise answer
            take(answer, some)

    def _ask(self, at: _Progress, known: KnownOffsets) -> None:
        """Describe the groups in `at.coordinators` and fetch their offsets; groups with an answer are not asked again."""
        todo, at.coordinators = at.coordinators, {}
        todo = {group_id: node for group_id, node in todo.items() if node not in at.silent}
        self._describe(todo, at)
        described = {group_id: node for group_id, node in todo.items() if group_id in at.descriptions}
        self._fetch(described, at, {group_id: known.get(group_id, ()) for group_id in described})

    def _describe(self, todo: Mapping[str, int], at: _Progress) -> None:
        """Describe groups as what they are. One of unknown type is described as each type in turn, until there is an answer.

        Brokers before ListGroups 5 do not report types, and neither do groups that no list has. A broker without the request for
        a type has no groups of it, unless it lists one: 4.0 has an early version of share groups.
        """
        for kind, (request, parse) in _DESCRIPTIONS.items():

            def take(answer: Any, _asked: Sequence[str], kind: str = kind, parse: _Parse = parse) -> None:
                for group in answer.groups or ():
                    found = parse(group)
                    is_other = at.types.get(group.group_id) != kind
                    # a broker that has the request, but whose cluster has not enabled the type
                    _settle(group.group_id, None if found == _NOT_ENABLED and is_other else found, at)

            def rejected(asked: Sequence[str], kind: str = kind) -> None:
                for group_id in asked:
                    if at.types.get(group_id) == kind:
                        at.failures[group_id] = _NOT_ENABLED

            of_kind = {group_id: node for group_id, node in todo.items() if _may_be(kind, group_id, at)}
            refused = None if kind == _CLASSIC else rejected
            self._send(of_kind, request, _by_count(_DESCRIBED), take, at, of_several=True, rejected=refused)

    def _fetch(self, todo: Mapping[str, int], at: _Progress, known: KnownOffsets) -> None:
        def all_offsets(answer: Any, asked: Sequence[str]) -> None:
            for group_id, part in offsets_of_groups(answer, asked):
                found = fetched_offsets(part)
                if isinstance(found, CoordinatorFailure):
                    at.failures[group_id] = found
                else:
                    at.offsets[group_id] = found

        def sizes(group_ids: Sequence[str]) -> Iterator[list[str]]:
            return _by_offsets(group_ids, known)

        self._send(todo, all_offsets_request, sizes, all_offsets, at)
        missing = {
            group_id: sorted(set(known[group_id]) - at.offsets[group_id].offsets.keys())
            for group_id in todo
            if group_id in at.offsets
        }
        missing = {group_id: keys for group_id, keys in missing.items() if keys}

        def named(answer: Any, asked: Sequence[str]) -> None:
            for group_id, part in offsets_of_groups(answer, asked):
                found = fetched_offsets(part)
                if isinstance(found, FetchedOffsets) and group_id in at.offsets:
                    before = at.offsets[group_id]
                    at.offsets[group_id] = FetchedOffsets(
                        before.offsets | found.offsets, found.without_commit, before.failed | found.failed
                    )

        self._send(
            {group_id: todo[group_id] for group_id in missing},
            lambda some: named_offsets_request({group_id: missing[group_id] for group_id in some}),
            sizes,
            named,
            at,
        )

    def _send(
        self,
        todo: Mapping[str, int],
        request: Callable[[Sequence[str]], RequestFor],
        divide: Callable[[Sequence[str]], Iterator[list[str]]],
        take: _Take,
        at: _Progress,
        *,
        of_several: bool = False,
        rejected: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        """Send requests for the groups of each node.

        `of_several` if every version of the request is about several groups. `rejected` is called with the groups of a node that
        has no version of the request; without it, that is an error.
        """
        parts = {
            node: list(pieces(group_ids, 1) if node in at.one_by_one and not of_several else divide(group_ids))
            for node, group_ids in keys_by_node(todo, at.silent).items()
        }

        def received(node: int, answer: Any, asked: Sequence[str]) -> None:
            # not of a subclass: an authentication that failed is an error of the poll
            if rejected is not None and type(answer) is RequestRejected:
                rejected(asked)
            elif has_answered(node, answer, at.silent):
                take(answer, asked)

        send_pieces(self._connection, parts, request, received, at.silent)


def _may_be(kind: str, group_id: str, at: _Progress) -> bool:
    """True for groups of the type, and for groups of unknown type that no earlier type has an answer about."""
    known = at.types.get(group_id, _UNKNOWN_TYPE)
    is_open = kind == _CLASSIC or at.descriptions.get(group_id, _NO_ANSWER) is None
    return known == kind or (known == _UNKNOWN_TYPE and is_open)


def _settle(group_id: str, found: GroupAnswer | CoordinatorFailure | None, at: _Progress) -> None:
    if isinstance(found, CoordinatorFailure):
        at.failures[group_id] = found
        at.descriptions.pop(group_id, None)
    elif found is not None or at.descriptions.get(group_id) is None:
        at.descriptions[group_id] = found


def _polled_groups(at: _Progress) -> Iterator[tuple[str, PolledGroup]]:
    """The groups with both answers. An error about one of them is in `failures` instead."""
    for group_id, found in at.offsets.items():
        if group_id in at.descriptions and group_id not in at.failures:
            yield group_id, PolledGroup(at.descriptions[group_id], found.offsets, found.without_commit)


def _by_count(size: int) -> Callable[[Sequence[str]], Iterator[list[str]]]:
    return lambda group_ids: pieces(group_ids, size)


def _by_offsets(group_ids: Iterable[str], known: KnownOffsets) -> Iterator[list[str]]:
    """Pieces of groups, whose answers are expected to have a bounded number of offsets."""
    piece: list[str] = []
    expected = 0
    for group_id in group_ids:
        size = len(known.get(group_id, ())) or _NEW_GROUP
        if piece and (len(piece) == _FETCHED or expected + size > _OFFSETS_PER_ANSWER):
            yield piece
            piece, expected = [], 0
        piece.append(group_id)
        expected += size
    if piece:
        yield piece
