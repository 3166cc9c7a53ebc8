"""Random logs, loaded by real brokers and by us; `make oracle` runs more of them."""

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from generations import GENERATIONS
from oracle import show
from ours import Tables
from patience import LIMIT_SECONDS
from seed_log import write_seed
from segment_builder import LogBuilder
from stories import TOPICS, Setting
from trial import PARTITIONS, RETENTION_MINUTES, Mode, Trial, first_partition

NEWEST = "4.3.0"
MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name.lower())


class JobTables(Tables):
    """The tables that `grouplake run` makes, in a process of its own."""

    def load(self, log: Path, seed: int) -> None:  # noqa: ARG002 - the job decides about batches
        self._log = log
        self._run("--expiry", "observe")

    def sweep(self, now_ms: int) -> None:
        self._run("--expiry", "apply", "--now", str(now_ms))

    def _run(self, *arguments: str) -> None:
        grouplake = Path(sys.executable).parent / "grouplake"
        command = [
            str(grouplake),
            "run",
            "--source",
            f"segments:{self._log}",
            "--tables",
            str(self._root),
            "--era",
            self._era.name,
        ]
        command += ["--retention-minutes", str(RETENTION_MINUTES), *arguments]
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.broker
@MODES
def test_the_newest_broker_and_the_tables_agree(mode: Mode, capsys: pytest.CaptureFixture[str]) -> None:
    agree(NEWEST, mode, [1], capsys)


@pytest.mark.broker
@pytest.mark.slow
@MODES
@pytest.mark.parametrize("version", GENERATIONS)
def test_every_generation_and_the_tables_agree(version: str, mode: Mode, capsys: pytest.CaptureFixture[str]) -> None:
    agree(version, mode, range(2, 10), capsys)


@pytest.mark.broker
@pytest.mark.slow
@MODES
def test_the_tables_of_the_job_agree(mode: Mode, capsys: pytest.CaptureFixture[str]) -> None:
    agree(NEWEST, mode, [1], capsys, JobTables)


@pytest.mark.parametrize("version", GENERATIONS)
def test_a_seed_is_the_same_log_every_time(version: str, tmp_path: Path) -> None:
    topic_ids = {topic: UUID(int=number) for number, topic in enumerate(TOPICS)}
    setting = Setting(GENERATIONS[version], 1_800_000_000_000, 86_400_000, topic_ids)
    found = []
    for name in ("once", "again"):
        builder = LogBuilder(tmp_path / name)
        groups = write_seed(builder, 7, setting, first_partition(7), PARTITIONS).groups
        found.append((groups, [builder.records(partition) for partition in range(PARTITIONS)]))
    assert found[0] == found[1]


def agree(
    version: str, mode: Mode, seeds: "range | list[int]", capsys: pytest.CaptureFixture[str], tables: type[Tables] = Tables
) -> None:
    with Trial(GENERATIONS[version], mode) as trial:
        outcome = trial.round(seeds, tables=tables)
    show(outcome)
    assert outcome.differences == (), capsys.readouterr().out
    assert outcome.groups > 50 * len(seeds)
