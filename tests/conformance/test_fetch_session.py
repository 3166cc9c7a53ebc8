"""The cases of Kafka's `FetchSessionTest` (4.3); each test names the case it mirrors."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from fetch_sessions import BAR_0, BAR_1, FOO_0, FOO_1, IDS, NAMES, ZAR_0, At, Node, found, of, requested

from coordinator_core.protocol.cluster import FetchedPartition, FetchPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.service.topics.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FullFetch,
    IncrementalFetch,
    SessionlessFetch,
    next_epoch,
)
from coordinator_core.service.topics.fetching import Fetching
from coordinator_core.service.topics.topic_registry import TopicRegistry


def errors(partitions: Sequence[FetchedPartition]) -> dict[At, ErrorCode]:
    return {(NAMES[each.topic_id], each.partition): each.error for each in partitions}


def by_name(each: FetchPartition) -> FetchedPartition:
    """As a node finds it: an unknown id is an error."""
    return found(each) if each.topic else found(each, error=ErrorCode.UNKNOWN_TOPIC_ID)


def test_ids_of_sessions() -> None:
    """testNewSessionId"""
    fetching = Fetching(TopicRegistry("", {}, {}), 10, lambda: 0)
    assert all(fetching.sessions._new_id() > 0 for _ in range(10_000))


def test_sessions_are_replaced() -> None:
    """testSessionCache: without the session of a follower"""
    node = Node(slots=3, eviction_ms=100)
    made = []
    for node.now_ms, size in ((0, 10), (10, 20), (20, 30)):
        made.append(node.create(size))
    first, second, third = made
    for node.now_ms, size in ((30, 40), (40, 5)):
        assert node.create(size) == NO_SESSION
    assert all(each in node.sessions for each in made)
    node.now_ms = 200
    node.touch(first, 1)
    node.now_ms = 210
    fourth = node.create(11)
    assert second not in node.sessions
    assert all(each in node.sessions for each in (first, third, fourth))
    node.now_ms = 390
    node.touch(third, 1)
    node.now_ms = 400
    node.touch(first, 2)
    node.touch(fourth, 1)
    node.now_ms = 410
    fifth = node.create(50)
    assert first not in node.sessions
    assert all(each in node.sessions for each in (third, fourth, fifth))
    assert node.create(5) == NO_SESSION


def test_counts_of_sessions() -> None:
    """testResizeCachedSessions"""
    node = Node(slots=2, eviction_ms=100)

    def counts() -> tuple[int, int, int]:
        return len(node.sessions), node.sessions.total_partitions, node.sessions.evictions

    assert counts() == (0, 0, 0)
    first = node.create(2)
    assert counts() == (1, 2, 0)
    second = node.create(4)
    assert counts() == (2, 6, 0)
    node.now_ms = 200
    node.touch(first, 1)
    node.touch(second, 1)
    third = node.create(5)
    assert first not in node.sessions
    assert counts() == (2, 9, 1)
    node.sessions.remove(third)
    assert counts() == (1, 4, 1)
    node.begin((), (second, 2), [FetchPartition("", UUID(int=1), 0, 0)])
    assert counts() == (1, 3, 1)


def test_leader_epochs_of_a_session() -> None:
    """testCachedLeaderEpoch"""
    node = Node()

    def epochs(partitions: Sequence[FetchPartition]) -> list[int]:
        return [each.current_leader_epoch for each in partitions]

    full = node.begin([requested(FOO_0), requested(FOO_1, 10, 1), requested(BAR_1, 10, 2)])
    assert epochs(full.partitions) == [-1, 1, 2]
    session = node.respond(full).session_id
    same = node.begin((), (session, 1))
    assert epochs(same.partitions) == [-1, 1, 2]
    node.respond(same)
    changed = node.begin([requested(FOO_0, 0, 6), requested(FOO_1, 10), requested(BAR_1, 10, 3)], (session, 2))
    assert epochs(changed.partitions) == [6, -1, 3]


def test_requests_of_a_session() -> None:
    """testFetchRequests: without throttling"""
    node = Node()
    partitions = [requested(FOO_0), requested(FOO_1, 10)]
    assert isinstance(node.begin(partitions, (NO_SESSION, FINAL_EPOCH)), SessionlessFetch)
    full = node.begin(partitions)
    assert isinstance(full, FullFetch)
    assert full.partitions == tuple(partitions)
    response = node.respond(full)
    session = response.session_id
    assert (response.error, of(response.partitions)) == (ErrorCode.NONE, [FOO_0, FOO_1])
    assert session != NO_SESSION
    for wrong, error in (
        ((session, 5), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ((session + 1, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ):
        refused = node.begin(partitions, wrong)
        assert refused.partitions == ()
        assert node.respond(refused).error is error
    incremental = node.begin((), (session, 1))
    assert isinstance(incremental, IncrementalFetch)
    assert incremental.partitions == tuple(partitions)
    response = node.respond(incremental)
    assert (response.error, response.session_id, response.partitions) == (ErrorCode.NONE, session, ())
    assert node.respond(node.begin(partitions, (session, 5))).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    final = node.begin([requested(BAR_0), requested(BAR_1, 10)], (session, FINAL_EPOCH))
    assert isinstance(final, SessionlessFetch)
    assert len(node.sessions) == 0
    response = node.respond(final)
    assert (response.session_id, of(response.partitions)) == (NO_SESSION, [BAR_0, BAR_1])


@pytest.mark.parametrize("by_id", [True, False])
def test_incremental_fetch(by_id: bool) -> None:
    """testIncrementalFetchSession"""
    node = Node()
    session = node.respond(node.begin([requested(FOO_0, by_id=by_id), requested(FOO_1, 10, by_id=by_id)], by_id=by_id)).session_id
    fetch = node.begin([requested(BAR_0, 15, by_id=by_id)], (session, 1), [requested(FOO_0, by_id=by_id)], by_id=by_id)
    assert isinstance(fetch, IncrementalFetch)
    assert [(each.topic, each.partition, each.offset) for each in fetch.partitions] == [(*FOO_1, 10), (*BAR_0, 15)]
    response = node.respond(fetch)
    assert (response.error, response.session_id, of(response.partitions)) == (ErrorCode.NONE, session, [BAR_0])


def test_names_need_no_ids() -> None:
    """testFetchSessionWithUnknownIdOldRequestVersion"""
    node = Node()
    fetch = node.begin([requested(FOO_0, by_id=False), requested(FOO_1, by_id=False)], by_id=False, names={IDS["bar"]: "bar"})
    response = node.respond(fetch, by_name)
    assert response.session_id != NO_SESSION
    assert [each.error for each in response.partitions] == [ErrorCode.NONE, ErrorCode.NONE]


def test_unknown_ids() -> None:
    """testFetchSessionWithUnknownId"""
    node = Node()
    only_bar = {IDS["bar"]: "bar"}
    places = (FOO_0, FOO_1, ZAR_0)
    full = node.begin([requested(at, names=only_bar) for at in places], names=only_bar)
    assert of(full.partitions) == [("", 0), ("", 1), ("", 0)]
    response = node.respond(full, by_name)
    assert (response.error, errors(response.partitions)) == (ErrorCode.NONE, dict.fromkeys(places, ErrorCode.UNKNOWN_TOPIC_ID))
    no_zar = {IDS["foo"]: "foo", IDS["bar"]: "bar"}
    incremental = node.begin((), (response.session_id, 1), names=no_zar)
    assert of(incremental.partitions) == [FOO_0, FOO_1, ("", 0)]
    assert errors(node.respond(incremental, by_name).partitions) == {
        FOO_0: ErrorCode.NONE,
        FOO_1: ErrorCode.NONE,
        ZAR_0: ErrorCode.UNKNOWN_TOPIC_ID,
    }


@pytest.mark.parametrize(
    "began_by_id",
    [
        pytest.param(False, id="testIncrementalFetchSessionWithIdsWhenSessionDoesNotUseIds"),
        pytest.param(True, id="testIncrementalFetchSessionWithoutIdsWhenSessionUsesIds"),
    ],
)
def test_ids_and_names_in_one_session(began_by_id: bool) -> None:
    """testIncrementalFetchSessionWithIdsWhenSessionDoesNotUseIds, testIncrementalFetchSessionWithoutIdsWhenSessionUsesIds"""
    node = Node()
    session = node.respond(node.begin([requested(FOO_0, by_id=began_by_id)], by_id=began_by_id)).session_id
    fetch = node.begin((), (session, 1), by_id=not began_by_id)
    assert node.respond(fetch).error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_topic_that_is_created_again() -> None:
    """testFetchSessionUpdateTopicIdsBrokerSide: a node of one's own has no inconsistent ids, the old id is unknown"""
    node = Node()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    full = node.begin([requested(FOO_0), requested(BAR_1, 10)])
    response = node.respond(full, lambda each: found(each, error=unknown if each.topic == "foo" else ErrorCode.NONE))
    changed = {IDS["bar"]: "bar", UUID(int=99): "foo"}
    fetch = node.begin((), (response.session_id, 1), names=changed)
    response = node.respond(fetch, lambda each: found(each, error=unknown if each.topic == "foo" else ErrorCode.NONE))
    assert errors(response.partitions) == {FOO_0: unknown}


def test_names_are_found_later() -> None:
    """testResolveUnknownPartitions"""
    node = Node()
    foo, bar, zar = FOO_0, BAR_0, ZAR_0
    known = [{}, {IDS["foo"]: "foo"}, {IDS["foo"]: "foo", IDS["bar"]: "bar"}, NAMES]
    unknown = ("", 0)
    full = node.begin([requested(at, names={}) for at in (foo, bar, zar)], names={})
    assert of(full.partitions) == [unknown, unknown, unknown]
    session = node.respond(full, by_name).session_id
    expected = [[foo, unknown, unknown], [foo, bar, unknown], [foo, bar, zar], [foo, bar, zar]]
    again = [(), (requested(bar),), (), ()]
    for epoch, (names, partitions, places) in enumerate(zip([*known[1:], {}], again, expected, strict=True), 1):
        fetch = node.begin(partitions, (session, epoch), names=names)
        assert isinstance(fetch, IncrementalFetch)
        assert of(fetch.partitions) == places
        node.respond(fetch, by_name)


def test_a_deleted_topic_keeps_its_name() -> None:
    """Beside testResolveUnknownPartitions: also when the partition is requested again."""
    node = Node()
    session = node.respond(node.begin([requested(FOO_0)])).session_id
    assert of(node.begin([requested(FOO_0, 5, names={})], (session, 1), names={}).partitions) == [FOO_0]


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_forgotten_partitions(starts: bool, ends: bool) -> None:
    """testToForgetPartitions"""
    node = Node()
    only_foo = {IDS["foo"]: "foo"}
    first, second = (only_foo if starts else {}), (only_foo if ends else {})
    full = node.begin([requested(FOO_0, names=first), requested(BAR_0, names=first)], names=first)
    session = node.respond(full, by_name).session_id
    fetch = node.begin((), (session, 1), [requested(FOO_0, names=second)], names=second)
    assert isinstance(fetch, IncrementalFetch)
    assert of(fetch.partitions) == [("", 0)]
    node.respond(fetch, by_name)
    last = node.begin((), (session, 2), [requested(BAR_0, names={})], names={})
    assert isinstance(last, SessionlessFetch)
    assert last.partitions == ()


def test_errors_are_repeated() -> None:
    """testUpdateAndGenerateResponseData"""
    node = Node()
    only_foo = {IDS["foo"]: "foo"}
    partitions = [requested(FOO_0, names=only_foo), requested(BAR_0, names=only_foo)]
    expected = {FOO_0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, BAR_0: ErrorCode.UNKNOWN_TOPIC_ID}

    def find(each: FetchPartition) -> FetchedPartition:
        return found(each, error=expected[NAMES[each.topic_id], each.partition])

    assert errors(node.respond(node.begin(partitions, (NO_SESSION, FINAL_EPOCH), names=only_foo), find).partitions) == expected
    response = node.respond(node.begin(partitions, names=only_foo), find)
    assert errors(response.partitions) == expected
    session = response.session_id
    assert errors(node.respond(node.begin((), (session, 1), names=only_foo), find).partitions) == expected
    assert node.respond(node.begin((), (session, 1), names=only_foo), find).partitions == ()


def test_the_session_that_was_not_used_for_longest_is_replaced() -> None:
    """testFetchSessionExpiration"""
    node = Node(slots=2, eviction_ms=1_000)
    partitions = [requested(FOO_0), requested(FOO_1, 10)]
    first = node.respond(node.begin(partitions)).session_id
    node.now_ms = 500
    second = node.respond(node.begin(partitions)).session_id
    node.now_ms = 1_000
    assert isinstance(node.begin((), (first, 1)), IncrementalFetch)
    node.now_ms = 1_501
    third = node.respond(node.begin(partitions)).session_id
    assert (first in node.sessions, second in node.sessions, third in node.sessions) == (True, False, True)


def test_a_session_without_partitions_ends() -> None:
    """testZeroSizeFetchSession"""
    node = Node()
    session = node.respond(node.begin([requested(FOO_0), requested(FOO_1, 10)])).session_id
    fetch = node.begin((), (session, 1), [requested(FOO_0), requested(FOO_1)])
    assert isinstance(fetch, SessionlessFetch)
    response = node.respond(fetch)
    assert (response.session_id, response.partitions, len(node.sessions)) == (NO_SESSION, (), 0)


def test_partitions_with_records_are_read_last() -> None:
    """testDeprioritizesPartitionsWithRecordsOnly"""
    node = Node()
    places = [("foo", 1), ("bar", 2), ("zar", 3)]
    partitions = [requested(at, 100, 5) for at in places]
    session = node.respond(node.begin(partitions), lambda each: found(each, 50, start=0)).session_id
    fetch = node.begin(partitions, (session, 1))
    assert of(fetch.partitions) == places
    assert fetch.respond((), 0).partitions == ()
    foo, bar, zar = partitions
    changed = (found(foo, 60, start=0), found(bar, 60, records=b"r", start=0), found(zar, 50, start=0))
    assert of(fetch.respond(changed, 0).partitions) == places[:2]
    assert of(fetch.partitions) == [places[0], places[2], places[1]]


def test_partitions_are_the_same_by_id_or_by_name() -> None:
    """testCachedPartitionEqualsAndHashCode: a session has each partition once"""
    node = Node()
    named, unnamed = requested(FOO_0, 1), requested(FOO_0, 2, names={})
    other = named._replace(topic_id=UUID(int=77))
    assert node.begin([named, unnamed, other]).partitions == (unnamed, other)
    plain, another = requested(FOO_0, by_id=False), requested(BAR_0, by_id=False)
    assert node.begin([plain, another, plain], by_id=False).partitions == (plain, another)


def test_only_unknown_names_are_resolved() -> None:
    """testMaybeResolveUnknownName"""
    node = Node()
    partitions = [requested(FOO_0), requested(BAR_0, names={}), requested(ZAR_0, names={})]
    session = node.respond(node.begin(partitions), by_name).session_id
    names = {IDS["foo"]: "other", IDS["bar"]: "bar"}
    assert of(node.begin((), (session, 1), names=names).partitions) == [FOO_0, BAR_0, ("", 0)]


# ---- beside


def test_epochs_begin_again() -> None:
    """Beside: `FetchMetadata.nextEpoch`"""
    assert next_epoch(INITIAL_EPOCH) == 1
    assert next_epoch((1 << 31) - 1) == 1


def test_a_second_request_of_the_session() -> None:
    """Beside: it came over another connection, while the first one waited for records."""
    node = Node()
    session = node.respond(node.begin([requested(FOO_0)])).session_id
    waiting = node.begin((), (session, 1))
    second = node.begin((), (session, 2))
    assert node.respond(waiting).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert node.respond(second).error is ErrorCode.NONE


def test_most_partitions() -> None:
    """Beside: all sessions together hold a limited number of partitions."""
    node = Node(most_partitions=3)
    session = node.respond(node.begin([requested(FOO_0), requested(FOO_1)])).session_id
    assert node.respond(node.begin([requested(BAR_0), requested(BAR_1)])).session_id == NO_SESSION
    assert node.begin([requested(BAR_0)], (session, 1)).error is ErrorCode.NONE
    assert node.begin([requested(BAR_1)], (session, 2)).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(node.sessions), node.sessions.total_partitions) == (0, 0)
