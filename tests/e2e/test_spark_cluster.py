"""The job on a Spark standalone cluster of two workers: same tables, lost executors and workers, speculation, checks."""

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cluster_runs import NO_CONF, ClusterRuns, resume_until_ended, written_conf
from real_runs import real_run
from spark_cluster import SparkCluster, spark_cluster

from pipelines.runtime import failpoints
from pipelines.tables.store import TableStore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: A task halts at every piece of the log that it reads.
HALTS = {f"spark.executorEnv.{failpoints.VARIABLE}": "source:read=STOP"}
#: The time without executors after which a check ends, and the end of the process.
LOST_SECONDS = 60
LOG = Path(__file__).parents[1] / "data" / "kafka-4.1.1.records.jsonl"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def runs(cluster: SparkCluster, tmp_path: Path) -> ClusterRuns:
    return ClusterRuns(tmp_path, cluster)


def test_both_writers_write_the_tables_of_a_local_session(runs: ClusterRuns) -> None:
    for by_spark in (True, False, True):
        runs.grow()
        runs.finish(by_spark=by_spark)
        runs.expect_same_tables()


def test_a_run_that_follows_the_log(runs: ClusterRuns) -> None:
    runs.grow()
    with runs.run("--trigger", "continuous") as run:
        assert run.wait_until(lambda: "batch 0" in run.output), run.output
        runs.grow()
        assert run.wait_until(lambda: "batch 1" in run.output), run.output
        run.process.send_signal(signal.SIGTERM)
        assert run.wait() == 0, run.output
    # the sweeps of the reference belong to the ends of its batches, so only the log position is compared
    last = TableStore(str(runs.tables)).last_batch()
    assert last is not None
    assert last.next_offsets == runs.ends


@pytest.mark.parametrize("by_spark", [False, True])
def test_an_executor_that_is_killed_in_the_middle_of_a_batch(runs: ClusterRuns, by_spark: bool) -> None:
    runs.grow()
    first, second = runs.cluster.running
    with runs.run(by_spark=by_spark, conf=HALTS) as run:
        assert run.wait_until(lambda: bool(first.halted() and second.halted())), run.output
        killed = first.kill_executor()
        resume_until_ended(run, (first, second))
    assert killed not in first.executors()
    runs.expect_same_tables()


def test_a_worker_that_is_lost_in_the_middle_of_a_batch(runs: ClusterRuns) -> None:
    runs.grow()
    lost = runs.cluster.add_worker()
    runs.cluster.wait_for_workers()
    with runs.run(by_spark=True, conf=HALTS) as run:
        assert run.wait_until(lambda: all(worker.halted() for worker in runs.cluster.running)), run.output
        lost.kill()
        resume_until_ended(run, runs.cluster.running)
    runs.expect_same_tables()


@pytest.mark.parametrize("by_spark", [False, True])
def test_a_slow_task_is_overtaken_by_its_speculative_copy(runs: ClusterRuns, by_spark: bool, tmp_path: Path) -> None:
    runs.grow()
    events = tmp_path / "events"
    events.mkdir()
    slow, fast = runs.cluster.running
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "10ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.minTaskRuntime": "1ms",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    with runs.run(by_spark=by_spark, conf={**HALTS, **speculation}) as run:
        assert run.wait_until(lambda: bool(slow.halted())), run.output
        # the worker that halts never continues: without the copy of its task the batch would not end
        resume_until_ended(run, (fast,))
    runs.expect_same_tables()
    assert speculative_tasks(events) > 0


def speculative_tasks(events: Path) -> int:
    """Number of speculative tasks that succeeded, from Spark's event log."""
    lines = [line for log in events.rglob("*") if log.is_file() for line in log.read_text(errors="replace").splitlines()]
    ended = [json.loads(line) for line in lines if line.startswith('{"Event":"SparkListenerTaskEnd"')]
    return sum(event["Task Info"]["Speculative"] and event["Task End Reason"]["Reason"] == "Success" for event in ended)


def refused(
    cluster: SparkCluster,
    folder: Path,
    conf: Mapping[str, str] = NO_CONF,
    *,
    python: str | None = None,
    executors_seconds: int = 60,
) -> tuple[int, str]:
    """Exit code and output of a run that must not start its stream."""
    path = written_conf(folder, cluster.address, conf, executors_seconds=executors_seconds)
    source = ["--source", f"jsonl:{LOG}", "--tables", str(folder / "tables"), "--conf", str(path)]
    with pytest.MonkeyPatch.context() as patch:
        if python is not None:
            patch.setenv("PYSPARK_PYTHON", python)
        with real_run(["run", *source], folder / "output") as run:
            code = run.wait()
    assert not (folder / "tables" / "_checkpoint").exists()
    return code, run.output


def test_an_environment_without_the_package_is_reported_in_one_line(cluster: SparkCluster, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    code, output = refused(cluster, tmp_path, python=str(python))
    assert code == 2, output
    starting, waiting, checking, error = output.splitlines()
    assert (starting, waiting, checking) == ("starting Spark", "waiting for executors", "checking 2 executors")
    assert "has no grouplake (ModuleNotFoundError: No module named 'pipelines'): bring this environment to every node" in error
    assert error.endswith("2 of 2 executors have problems")


def test_executors_that_cannot_start_are_reported_after_the_second_attempt(cluster: SparkCluster, tmp_path: Path) -> None:
    code, output = refused(cluster, tmp_path, {"spark.executor.extraJavaOptions": "-javaagent:/missing.jar"})
    assert code == 1, output
    assert output.splitlines()[1:] == ["waiting for executors", output.splitlines()[-1]]
    assert "grouplake: executors cannot start: Command exited with code 1; the reason is in their logs" in output


def test_a_cluster_without_resources_is_reported(cluster: SparkCluster, tmp_path: Path) -> None:
    code, output = refused(cluster, tmp_path, {"spark.executor.memory": "64g"}, executors_seconds=3)
    assert code == 1, output
    assert "grouplake: no executor within 3 s: the cluster has no free cores or no worker with enough memory" in output


def test_a_cluster_that_is_lost_during_the_check_ends_the_run(tmp_path: Path) -> None:
    python = tmp_path / "python"
    # the driver plans no read before the check
    python.write_text("#!/bin/sh\nsleep 600\n")
    python.chmod(0o755)
    with spark_cluster(tmp_path / "lost") as lost, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(python))
        conf = written_conf(tmp_path, lost.address)
        source = ["--source", f"jsonl:{LOG}", "--tables", str(tmp_path / "tables"), "--conf", str(conf)]
        with real_run(["run", *source], tmp_path / "output") as run:
            assert run.wait_until(lambda: "checking 2 executors" in run.output), run.output
            lost.stop()
            assert run.has_ended_after(LOST_SECONDS), run.output
            assert run.wait() == 1
    ends = ("all executors were lost during their check", "the cluster ended the application: ")
    assert run.output.splitlines()[-1].startswith(tuple(f"grouplake: {end}" for end in ends))
    assert "Traceback" not in run.output
