"""The same clients in the same scenario leave the same records and answers on a real broker and on our coordinator."""

from collections.abc import Iterator

import pytest
from broker_queries import BrokerQueries
from two_coordinators import TwoPerformances, generation_of, once_loaded, our_coordinator, played_to_both, without_ids
from written_records import differences

pytestmark = [pytest.mark.long, pytest.mark.broker]


@pytest.fixture(scope="module", params=[pytest.param(version, marks=pytest.mark.slow) for version in ("4.1.1", "4.3.0", "3.9.1")])
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoPerformances]:
    with played_to_both(request.param, tmp_path_factory.mktemp("played")) as performances:
        yield performances


def test_the_records_are_the_same_byte_for_byte(played: TwoPerformances) -> None:
    theirs, ours = played.theirs.written(), played.ours.written()
    assert sum(len(records) for records in theirs.values()) > 100
    found = differences(theirs, ours)
    assert not found, "\n".join(found)


def test_the_answers_are_the_same(played: TwoPerformances) -> None:
    theirs, ours = without_ids(played.theirs), without_ids(played.ours)
    assert ours.listed == theirs.listed
    assert ours.classic == theirs.classic
    assert ours.offsets == theirs.offsets
    assert ours.unstable == theirs.unstable


def test_the_broker_loads_our_log_as_we_left_it(played: TwoPerformances) -> None:
    played.broker.place_segments(played.ours.log)
    played.broker.start()
    try:
        with BrokerQueries(played.broker.bootstrap, generation_of(played.broker.version)) as queries:
            assert once_loaded(queries, played.ours.answers, played.ours.groups) == played.ours.answers
    finally:
        played.broker.stop()


def test_we_load_the_log_of_the_broker_as_it_left_it(played: TwoPerformances) -> None:
    with (
        our_coordinator(played.theirs.era, played.theirs.log) as ours,
        BrokerQueries(ours.bootstrap, generation_of(played.broker.version)) as queries,
    ):
        assert once_loaded(queries, played.theirs.answers, played.theirs.groups) == played.theirs.answers
        ours.stop()
