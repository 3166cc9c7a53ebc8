"""The coordinator, killed at random moments under a crowd of members, while tables follow its log.

SOAK_MEMBERS, SOAK_KILLS and SOAK_SEED set the size of the long tests.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from followers import Follower, JobFollower, ThreadFollower
from soak import TOPIC, TOPIC_PARTITIONS, Load, SoakTest

from coordinator_core.client import CrowdSettings

MEMBERS = int(os.environ.get("SOAK_MEMBERS", "1000"))
KILLS = int(os.environ.get("SOAK_KILLS", "100"))
SEED = int(os.environ.get("SOAK_SEED", "20261121"))

#: Longer than any test: the crowd runs for the whole test.
_FOR_EVER_MS = 100_000_000


def crowd(members: int, groups: int, **changed: int) -> CrowdSettings:
    settings: dict[str, Any] = {"ramp_ms": 500, "pause_ms": 5, "session_timeout_ms": 1_500, "rebalance_timeout_ms": 3_000}
    settings |= {"heartbeat_interval_ms": 300, "leaves": 2, "crashes": 1} | changed
    return CrowdSettings(
        groups, members, (TOPIC,), TOPIC_PARTITIONS, duration_ms=_FOR_EVER_MS, seed=SEED, prefix="crowd", **settings
    )


def soak_test(folder: Path, load: Load, follower: type, course: Callable[[SoakTest], Awaitable[None]]) -> None:
    """Run the course, and print the counts, also if it fails."""
    log = folder / "log"
    tables: Follower = follower(log, folder / "tables")

    async def run() -> None:
        soak = SoakTest(log, load, tables)
        began = time.monotonic()
        try:
            await soak.begin()
            await course(soak)
            soak.expect_no_findings()
            soak.expect_generations_to_grow()
            assert soak.crowd.counts["commit NONE"] > 0
        finally:
            print(f"seed {load.seed}, {time.monotonic() - began:.0f} s: {soak.summary()}", flush=True)
            await soak.end()

    asyncio.run(run())


async def kills(soak: SoakTest, count: int, compare_every: int, longest: float = 2.0) -> None:
    """Runs of up to `longest` seconds, most of them counted from the first commit of a member; some end while they load."""
    draw, compared_at = random.Random(SEED), 0
    await soak.run_loaded(1.0, until_busy=True)
    while soak.report.kills < count:
        await soak.kill()
        if draw.random() < 0.15:
            await soak.run_while_loading(draw.uniform(0, 0.2))
        else:
            await soak.run_loaded(draw.uniform(0, longest), until_busy=draw.random() < 0.7)
        soak.expect_no_findings()
        if soak.report.kills >= compared_at + compare_every:
            compared_at = soak.report.kills
            await soak.check_tables()
            await soak.compare()
            print(soak.summary(), flush=True)
    await soak.compare()
    assert soak.report.checks_of_acknowledged > 0


async def calm(soak: SoakTest, comparisons: int, seconds: float) -> None:
    """A course without kills."""
    for _ in range(comparisons):
        for _ in range(3):
            await asyncio.sleep(seconds / 3)
            await soak.check_tables()
        await soak.compare()
        print(soak.summary(), flush=True)


@pytest.mark.slow
def test_a_few_kills_under_a_small_crowd(tmp_path: Path) -> None:
    soak_test(tmp_path, Load(crowd(60, 6), seed=SEED), ThreadFollower, lambda soak: kills(soak, 5, 3, 0.5))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1_800)
def test_the_job_follows_a_large_crowd(tmp_path: Path) -> None:
    patient = {"ramp_ms": 20_000, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000, "heartbeat_interval_ms": 3_000}
    settings = crowd(MEMBERS, MEMBERS // 20, **patient, leaves=30, crashes=15)
    load = Load(settings, offset_clients=20, segment_bytes=1_000_000, seed=SEED)
    soak_test(tmp_path, load, JobFollower, lambda soak: calm(soak, 5, 20.0))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1_200 + 60 * KILLS)
def test_the_job_follows_through_kills(tmp_path: Path) -> None:
    members = max(60, MEMBERS // 8)
    soak_test(tmp_path, Load(crowd(members, members // 8), seed=SEED), JobFollower, lambda soak: kills(soak, KILLS, 10))
