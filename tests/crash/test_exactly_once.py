"""Consume, transform, produce with librdkafka, while workers and coordinator are killed: every record is there exactly once.

EXACTLY_ONCE_KILLS, EXACTLY_ONCE_WORKERS and EXACTLY_ONCE_SEED set the size of the long test. The seed decides which processes are
killed and when; what they are doing at that moment depends on the machine.
"""

import os
import time
from pathlib import Path

import pytest
from exactly_once import ExactlyOnce

KILLS = int(os.environ.get("EXACTLY_ONCE_KILLS", "100"))
WORKERS = int(os.environ.get("EXACTLY_ONCE_WORKERS", "20"))
SEED = int(os.environ.get("EXACTLY_ONCE_SEED", "20261123"))


def transform(folder: Path, seed: int, workers: int, kills: int, longest_seconds: float, records: int, era: str = "4") -> None:
    chain = ExactlyOnce(folder, seed, workers, era)
    began = time.monotonic()
    with chain.running():
        try:
            chain.write(records)
            chain.kill_at_random(kills, longest_seconds, records)
            chain.finish()
            assert chain.differences() == []
            assert chain.kills.busy > 0
            assert chain.coordinator.events("unexpected error") == []
        finally:
            print(f"seed {seed}, {time.monotonic() - began:.0f} s, {len(chain.written)} records: {chain.kills}", flush=True)


@pytest.mark.long
def test_a_few_kills(tmp_path: Path) -> None:
    transform(tmp_path, SEED, 3, 5, 0.5, 300)


@pytest.mark.slow
@pytest.mark.timeout(1_200 + 60 * KILLS)
@pytest.mark.parametrize("era", ["4", "3"])
def test_many_kills(tmp_path: Path, era: str) -> None:
    """Clients of era 3 add their partitions to the transaction themselves."""
    transform(tmp_path, SEED, WORKERS, KILLS if era == "4" else KILLS // 4, 1.0, 500, era)
