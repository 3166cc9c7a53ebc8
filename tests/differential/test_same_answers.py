"""The same random requests to a broker and to the coordinator of its era: equal responses, but for a table with reasons.

The full form: `DIFFERENTIAL_SEEDS=200 pytest -m slow tests/differential`; `DIFFERENTIAL_FIRST` is the first seed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from differential_run import Comparison, Difference, common_versions
from differential_side import Side, Step
from differential_table import KNOWN, Known, known_entry, stale_entries

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker]

OFFSETS_PARTITIONS, TRANSACTION_PARTITIONS = 4, 2
ERAS = {"4.3.0": "4", "3.9.1": "3"}
SHORT = 10
FULL, FIRST = int(os.environ.get("DIFFERENTIAL_SEEDS", "200")), int(os.environ.get("DIFFERENTIAL_FIRST", "0"))


@dataclass(frozen=True)
class Pair:
    era: str
    broker: PrivateBroker
    ours: PrivateCoordinator

    def differences(self, seeds: range) -> Iterator[Difference]:
        versions = None
        for seed in seeds:
            sides = Side("broker", int(self.broker.bootstrap.rpartition(":")[2])), Side("Grouplake", self.ours.port)
            versions = versions or common_versions(*sides)
            yield from Comparison(seed, versions, *sides).run()


@pytest.fixture(params=["4.3.0", pytest.param("3.9.1", marks=pytest.mark.slow)])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """A broker and a coordinator for one test: another one would find the topics and groups of its seeds."""
    version, era = request.param, ERAS[request.param]
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.num.partitions": str(TRANSACTION_PARTITIONS),
        # on a busy machine, its own controller would fence the broker, which would change leader epochs
        "broker.session.timeout.ms": "120000",
    }
    with (
        PrivateBroker(version, offsets_partitions=OFFSETS_PARTITIONS, properties=settings) as broker,
        PrivateCoordinator(
            tmp_path / "log",
            era=era,
            group_initial_rebalance_delay_ms=0,
            offsets_topic_num_partitions=OFFSETS_PARTITIONS,
            transaction_state_log_num_partitions=TRANSACTION_PARTITIONS,
        ) as ours,
    ):
        yield Pair(era, broker, ours)
        assert ours.events("unexpected error") == []


def compared(pair: Pair, seeds: range) -> set[Known]:
    """The entries of the table that the seeds need. Fails for differences that no entry covers."""
    needed: set[Known] = set()
    unknown = []
    for found in pair.differences(seeds):
        entry = known_entry(found, pair.era)
        if entry is None:
            unknown.append(str(found))
        else:
            needed.add(entry)
    assert not unknown, f"{len(unknown)} differences:\n" + "\n".join(unknown[:20])
    return needed


@pytest.mark.long
def test_some_seeds(pair: Pair) -> None:
    compared(pair, range(SHORT))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_all_seeds(pair: Pair) -> None:
    needed = compared(pair, range(FIRST, FIRST + FULL))
    assert stale_entries(needed, pair.era) == [], "no seed needs these entries of the table: remove them"


# ---- the harness itself


def difference(path: str, theirs: object, ours: object, api: AnyApi = apis.HEARTBEAT) -> Difference:
    return Difference(1, 2, Step(0, api, 3, {"topics": []}), path, theirs, ours)


def test_a_difference_without_an_entry_is_reported() -> None:
    assert known_entry(difference("HEARTBEAT.error_code", 25, 0), "4") is None
    assert "seed 1, request 2" in str(difference("HEARTBEAT.error_code", 25, 0))


def test_an_entry_that_nothing_needs_is_reported() -> None:
    needed = [entry for entry in KNOWN if entry is not KNOWN[0]]
    assert stale_entries(needed, "4") == [KNOWN[0]]
    assert stale_entries(list(KNOWN), "3") == []


def test_ids_that_only_one_side_knows_are_equal() -> None:
    theirs, ours = Side("broker", 1), Side("Grouplake", 2)
    comparison = Comparison(0, {apis.JOIN_GROUP.number: range(10)}, theirs, ours)
    ids = [f"differential-{UUID(int=number)}" for number in (1, 2)]
    step = Step(0, apis.JOIN_GROUP, 4, {"group_id": "s0-g0"})
    answers = [{"error_code": 79, "generation_id": -1, "leader": "", "member_id": each, "members": []} for each in ids]
    assert comparison._compare(step, *answers)
    assert comparison.differences == []
    assert [side.bindings["member s0-g0 0"] for side in (theirs, ours)] == ids
    assert comparison._compare(step, answers[0], answers[1] | {"error_code": 0})
    assert [found.path for found in comparison.differences] == ["JOIN_GROUP.error_code"]
