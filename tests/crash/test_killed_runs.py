"""Kill -9 at every named step and at random moments: nothing is lost, doubled or resurrected, and readers see only whole batches.

CRASH_KILLS is the number of random kills of the long test.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import LIMIT_SECONDS

from pipelines.tables import definitions
from pipelines.upkeep.sample_retention import THINNED

HARNESS = Path(__file__).parents[1] / "support" / "kill_harness.py"
KILLS = int(os.environ.get("CRASH_KILLS", "200"))
SEED = int(os.environ.get("CRASH_SEED", "20261121"))

_STATE_AND_HISTORY = definitions.FROM_RECORDS[:-1]
_SWEPT = ("offsets", "group_records", "groups", "offset_history", "group_history", "membership_history")

_AGING = ("offset_history", "group_history", "membership_history", "ownership_history")

#: In the order in which consecutive runs reach them.
POINTS = (
    *(f"created:{name}" for name in definitions.WRITE_ORDER),
    "source:read",
    "claimed",
    *(f"after:{name}" for name in _STATE_AND_HISTORY),
    *(f"rolled_back:{name}" for name in _STATE_AND_HISTORY),
    "before:batches",
    "after:batches",
    "sweep:planned",
    *(f"sweep:after:{name}" for name in definitions.WRITE_ORDER if name in _SWEPT),
    *(f"maintain:aged:{name}" for name in _AGING),
    *(f"maintain:thinned:{name}" for name in THINNED),
    *(f"maintain:compacted:{name}" for name in definitions.WRITE_ORDER),
    *(f"maintain:{step}:{name}" for name in definitions.WRITE_ORDER for step in ("checkpoint", "vacuumed")),
)

#: One of each kind.
SOME_POINTS = (
    "created:groups",
    "source:read",
    "claimed",
    "after:offsets",
    "after:offset_history",
    "rolled_back:offsets",
    "before:batches",
    "after:batches",
    "sweep:after:group_records",
    "maintain:aged:offset_history",
    "maintain:compacted:batches",
    "maintain:vacuumed:offsets",
)


def killed(folder: Path, *arguments: str, limit_seconds: float = LIMIT_SECONDS) -> dict[str, Any]:
    command = [sys.executable, str(HARNESS), str(folder), "--seed", str(SEED), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=limit_seconds, cwd=HARNESS.parents[2], check=False)
    print(ended.stdout)
    assert ended.returncode in (0, 1), ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    assert report["wrong"] == [], ended.stderr
    return report


@pytest.mark.slow
def test_some_steps_and_a_few_random_moments(tmp_path: Path) -> None:
    report = killed(tmp_path, "--steps", "3", "--points", *SOME_POINTS, "--kills", str(len(SOME_POINTS) + 6))
    assert report["points"] == list(SOME_POINTS)
    assert report["polls"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("vacuum_hours", ["0", "1"])
def test_every_named_step(vacuum_hours: str, tmp_path: Path) -> None:
    report = killed(tmp_path, "--steps", "3", "--points", *POINTS, "--vacuum-hours", vacuum_hours, limit_seconds=1_800)
    assert report["points"] == list(POINTS)


@pytest.mark.slow
@pytest.mark.timeout(1_200 + 60 * KILLS)
@pytest.mark.parametrize(("vacuum_hours", "share"), [("0", 4), ("1", 1)])
def test_random_moments(vacuum_hours: str, share: int, tmp_path: Path) -> None:
    kills = -(-KILLS // share)
    report = killed(tmp_path, "--kills", str(kills), "--vacuum-hours", vacuum_hours, limit_seconds=1_200 + 60 * kills)
    assert report["kills"] == kills
    assert vacuum_hours == "0" or report["polls"] > kills // 4
