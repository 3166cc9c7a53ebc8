"""Records that no log of the oracle may hold: a broker gives up the log partition. Our loader reports them and continues."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from generations import GENERATIONS, Generation
from log_builder import member
from segment_builder import LogBuilder
from subscription_bytes import REFUSED, TAKEN
from trial import PARTITIONS, Mode, Trial, wait_until_loaded

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.partitioner import partition_for

pytestmark = [pytest.mark.broker, pytest.mark.slow]

#: Longer than any load here takes: the Java coordinator does not report that it has given up.
_LOAD_SECONDS = 30
COMMIT = encode(Record(1, OffsetCommitKey("other", "orders", 0), OffsetCommitValue(7, commit_timestamp=1), 0))
ODD_RECORDS = {
    "nothing odd": COMMIT,
    "an unknown type": (b"\0\x63", b"whatever"),
    "an unknown value version": (COMMIT[0], b"\0\x09" + (COMMIT[1] or b"")[2:]),
    "type 0 with value version 1": encode(Record(0, OffsetCommitKey("other", "orders", 0), OffsetCommitValue(7), 1)),
    "a null key": (None, b"whatever"),
}
TAKES = {
    "0.10.2.2": {"nothing odd", "type 0 with value version 1"},
    "2.8.2": {"nothing odd", "type 0 with value version 1"},
    "3.9.1": {"nothing odd", "type 0 with value version 1", "an unknown type"},
    "4.3.0": {"nothing odd", "an unknown type"},
}


@pytest.mark.parametrize("version", GENERATIONS)
def test_a_subscription_whose_lengths_exceed_its_bytes(version: str, tmp_path: Path) -> None:
    odd = {}
    for what, subscription in (TAKEN | REFUSED).items():
        members = (member(subscription=subscription, session_timeout=1_800_000),)
        odd[what] = encode(Record(2, GroupMetadataKey("other"), GroupMetadataValue("consumer", 1, "range", "m1", -1, members), 1))
    loaded = what_is_loaded(GENERATIONS[version], odd, tmp_path)
    assert loaded == set(odd if version == "0.10.2.2" else TAKEN)


@pytest.mark.parametrize("version", GENERATIONS)
def test_a_record_that_the_generation_does_not_know(version: str, tmp_path: Path) -> None:
    assert what_is_loaded(GENERATIONS[version], ODD_RECORDS, tmp_path) == TAKES[version]


def what_is_loaded(generation: Generation, odd: Mapping[str, tuple[bytes | None, bytes | None]], folder: Path) -> set[str]:
    """The names of the odd records that do not prevent the load of a commit in the same log partition."""
    builder = LogBuilder(folder)
    groups = {}
    for partition, (what, pair) in enumerate(odd.items()):
        group = next(name for n in range(10_000) if partition_for(name := f"group.{n}", PARTITIONS) == partition)
        commit = Record(1, OffsetCommitKey(group, "orders", 0), OffsetCommitValue(5, commit_timestamp=1), 0)
        (builder.append if generation.batches else builder.append_messages)(partition, [encode(commit), pair])
        groups[what] = group
    with Trial(generation, Mode.LOADED) as trial, trial.serving(folder) as queries:
        unloaded = wait_until_loaded(queries, list(groups.values()), _LOAD_SECONDS)
        return {what for what, group in groups.items() if group not in unloaded}
