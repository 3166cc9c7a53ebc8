"""What no log of the oracle may hold: one such record, and a broker gives up the log partition. Ours reports it and goes on."""

from pathlib import Path

import pytest
from generations import GENERATIONS
from log_builder import member
from segment_builder import LogBuilder
from subscription_bytes import REFUSED, TAKEN
from trial import PARTITIONS, Mode, Trial, wait_until_loaded

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.partitioner import partition_for

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(300)]

ODD = {**TAKEN, **REFUSED}
#: Longer than any load here takes: the Java coordinator never says that it has given up.
PATIENCE_SECONDS = 8


def group_in(partition: int) -> str:
    return next(name for number in range(10_000) if partition_for(name := f"group.{number}", PARTITIONS) == partition)


@pytest.mark.parametrize("version", GENERATIONS)
def test_a_subscription_that_says_more_than_it_has(version: str, tmp_path: Path) -> None:
    generation = GENERATIONS[version]
    builder = LogBuilder(tmp_path)
    groups = {what: group_in(partition) for partition, what in enumerate(ODD)}
    for partition, (what, group) in enumerate(groups.items()):
        value = GroupMetadataValue("consumer", 1, "range", "m1", -1, (member(subscription=ODD[what], session_timeout=1_800_000),))
        pairs = [
            encode(Record(2, GroupMetadataKey(group), value, 1)),
            encode(Record(1, OffsetCommitKey(group, "orders", 0), OffsetCommitValue(5, commit_timestamp=1), 0)),
        ]
        (builder.append if generation.batches else builder.append_messages)(partition, pairs)
    with Trial(generation, Mode.LOADED) as trial, trial.serving(tmp_path) as asker:
        unloaded = wait_until_loaded(asker, list(groups.values()), PATIENCE_SECONDS)
        loaded = [what for what, group in groups.items() if group not in unloaded and asker.offsets([group])[group]]
    assert loaded == list(ODD if generation.era == "0.10" else TAKEN)
