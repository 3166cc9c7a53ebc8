"""`grouplake run` without Spark, killed at its steps: the next run loses nothing and repeats nothing."""

import signal
from pathlib import Path

import pytest
from crash_log import CrashLog
from killed_runs import Workload
from real_runs import real_run
from table_contents import contents

from pipelines.job.stored_position import FILE
from pipelines.query.check import check

#: Failpoints of a run without Spark that has a batch and a sweep.
POINTS = (
    "source:read",
    "position:written",
    "claimed",
    "after:offsets",
    "after:offset_history",
    "before:batches",
    "after:batches",
    "sweep:after:offsets",
)


@pytest.mark.long
@pytest.mark.parametrize(
    "points",
    [("position:written", "after:batches"), pytest.param(POINTS, marks=pytest.mark.slow)],
    ids=["two steps", "every step"],
)
def test_killed_at_named_steps(points: tuple[str, ...], tmp_path: Path) -> None:
    log, tables, calm = CrashLog(tmp_path / "log", 1), tmp_path / "tables", tmp_path / "undisturbed"
    log.grow()
    workload = Workload(log, vacuum_hours=1)
    for root in (tables, calm):
        workload.apply(root, -1, 0)
    # Spark's checkpoint of the first batch, with the offsets of the tables
    (tables / "_checkpoint" / "offsets").mkdir(parents=True)
    log.grow()
    workload.apply(calm, 0, 1)
    conf = tmp_path / "job.toml"
    # a sample has times of its own, which the undisturbed tables do not have
    conf.write_text("[lag]\ninterval_seconds = 0\n")
    arguments = ["run", "--source", log.address, "--tables", str(tables), "--conf", str(conf)]
    arguments += ["--expiry", "apply", "--now", str(log.time_ms(2))]
    for number, point in enumerate(points):
        with real_run(arguments, tmp_path / f"output-{number}", fault=point) as run:
            assert run.wait() == -signal.SIGKILL, run.output
            assert "Spark" not in run.output
        assert check(str(tables)) == []
    with real_run(arguments, tmp_path / "output") as run:
        assert run.wait() == 0, run.output
        assert "Spark" not in run.output
    assert contents(tables) == contents(calm)
    assert check(str(tables)) == []
    assert not (tables / "_checkpoint").exists()
    assert (tables / FILE).exists()
