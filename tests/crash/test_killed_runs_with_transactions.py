"""`grouplake run --transactions`, killed at its steps: the next run loses nothing of both topics and repeats nothing."""

import signal
from pathlib import Path

import pytest
from both_topics import BothTopics, commits, initialized
from real_runs import real_run
from table_contents import contents
from transaction_tables import tables_without_records

from pipelines.query.check import check
from pipelines.query.engine import Snapshot

POINTS = ("transactions:read", "after:offsets", "after:transactions", "after:transaction_history", "before:batches")


@pytest.mark.long
@pytest.mark.parametrize(
    ("with_offsets", "points"),
    [
        (True, ("after:transactions",)),
        pytest.param(True, POINTS, marks=pytest.mark.slow),
        pytest.param(False, tuple(point for point in POINTS if point != "after:offsets"), marks=pytest.mark.slow),
    ],
    ids=["both topics, one step", "both topics", "one topic"],
)
def test_killed_at_named_steps(with_offsets: bool, points: tuple[str, ...], tmp_path: Path) -> None:
    log = BothTopics(tmp_path / "log")
    tables, calm = (tables_without_records(tmp_path / name) for name in ("tables", "calm"))
    log.append(commits(1), initialized("a", "b"))
    for root in (tables, calm):
        log.run(root)
    log.append(commits(2) if with_offsets else None, initialized("b", "c"))
    log.run(calm)
    conf = tmp_path / "job.toml"
    # a sample has times of its own, which the undisturbed tables do not have
    conf.write_text("[lag]\ninterval_seconds = 0\n")
    arguments = ["run", "--source", log.address, "--tables", str(tables), "--transactions", "--conf", str(conf)]
    for number, point in enumerate(points):
        with real_run(arguments, tmp_path / f"output-{number}", fault=point) as run:
            assert run.wait() == -signal.SIGKILL, run.output
        assert Snapshot.open(str(tables)).batch.batch_id == 1
        assert check(str(tables)) == []
    with real_run(arguments, tmp_path / "output") as run:
        assert run.wait() == 0, run.output
        assert "Spark" not in run.output
    assert contents(tables) == contents(calm)
    assert Snapshot.open(str(tables)).batch.transaction_offsets == {0: 4}
    with real_run(arguments, tmp_path / "again") as run:
        assert run.wait() == 0, run.output
        assert "up to date" in run.output
