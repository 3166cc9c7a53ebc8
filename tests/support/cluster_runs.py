"""`grouplake run` on a Spark cluster over a log that grows, beside an undisturbed reference without Spark."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from crash_log import CrashLog
from eventually import eventually
from killed_runs import Workload
from real_runs import RealRun, real_run
from spark_cluster import SparkCluster, Worker
from table_contents import contents

from pipelines.query.check import check

#: Small executors that start fast, and a driver that is reached on loopback.
_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}


NO_CONF: Mapping[str, str] = MappingProxyType({})


def written_conf(
    folder: Path,
    master: str,
    conf: Mapping[str, str] = NO_CONF,
    *,
    job: Mapping[str, object] | None = None,
    executors_seconds: int = 60,
    kafka_token_provider: str = "",
) -> Path:
    """A configuration file for a cluster; `conf` are settings of Spark."""
    path = folder / f"cluster-{len(list(folder.glob('cluster-*.toml')))}.toml"
    lines = ["[job]", *(f"{name} = {json.dumps(value)}" for name, value in (job or {}).items())]
    # the reference takes no samples
    lines += ["[lag]", "interval_seconds = 0", "[spark]", f'master = "{master}"', f"executors_seconds = {executors_seconds}"]
    lines += [f'kafka_token_provider = "{kafka_token_provider}"'] if kafka_token_provider else []
    lines += ["[spark.conf]"]
    lines += [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in {**_CONF, **conf}.items()]
    path.write_text("\n".join(lines))
    return path


class ClusterRuns:
    """The tables of runs on a cluster, and those of the undisturbed reference."""

    def __init__(self, folder: Path, cluster: SparkCluster) -> None:
        self.folder = folder
        self.cluster = cluster
        self.tables, self._calm = folder / "tables", folder / "undisturbed"
        self._log = CrashLog(folder / "log", seed=14)

    def grow(self, steps: int = 4) -> None:
        """Let the log grow by one batch, and apply it undisturbed."""
        self._log.grow(steps)
        last = len(self._log.ends) - 1
        Workload(self._log, vacuum_hours=1).apply(self._calm, last - steps, last)

    @property
    def source(self) -> str:
        """The address of the log."""
        return self._log.address

    @property
    def now_ms(self) -> int:
        """The time of the reference's last expiry sweep."""
        return self._log.time_ms(len(self._log.ends))

    @property
    def ends(self) -> Mapping[int, int]:
        """The end offsets of the log."""
        return self._log.ends[-1]

    @contextmanager
    def run(self, *arguments: str, by_spark: bool = False, conf: Mapping[str, str] = NO_CONF) -> Iterator[RealRun]:
        """A run of the job; `by_spark`: its batches are written by the executors."""
        path = written_conf(self.folder, self.cluster.address, conf, job={"bulk_rows": 1} if by_spark else {})
        command = ["run", "--source", self.source, "--tables", str(self.tables), "--conf", str(path)]
        with real_run([*command, "--expiry", "apply", "--now", str(self.now_ms), *arguments], path.with_suffix(".output")) as run:
            yield run

    def finish(self, *, by_spark: bool = False) -> None:
        """A run that nothing disturbs."""
        with self.run(by_spark=by_spark) as run:
            assert run.wait() == 0, run.output + self.cluster.logs_of_executors()[-5000:]

    def expect_same_tables(self) -> None:
        """Assert that the tables equal those of the reference."""
        assert check(str(self.tables)) == []
        found, expected = contents(self.tables), contents(self._calm)
        for name, rows in expected.items():
            assert found[name] == rows, f"{name}: {found[name]}\nexpected: {rows}"


def resume_until_ended(run: RealRun, workers: Sequence[Worker]) -> None:
    """Let tasks that halt at failpoints continue until the run has ended successfully."""

    def ended() -> int | None:
        for worker in workers:
            worker.resume()
        return run.process.poll()

    code = eventually("the run has ended", ended, lambda code: code is not None, pause_seconds=0.1)
    assert code == 0, run.output
