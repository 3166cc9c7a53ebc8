"""Spark standalone clusters on 127.0.0.1: a master, workers and their executors, as processes of PySpark's own `spark-class`.

with spark_cluster(folder, workers=2) as cluster:
    cluster.address                     # spark://127.0.0.1:PORT
    cluster.workers[0].kill_executor()  # the worker starts another one
    cluster.workers[0].kill()           # the machine is lost, with its executors
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from eventually import eventually
from patience import PATIENCE_SECONDS
from processes import family, session_states

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_MASTER_HOST = "127.0.0.1"
_MASTER_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_REGISTERED = re.compile(r"Successfully registered with master")
_EXECUTOR = b"CoarseGrainedExecutorBackend"

#: Daemons that start fast and are small; a lost worker is noticed after a few seconds instead of a minute.
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.worker.timeout=5",
}


class Daemon:
    """A master or worker. Its log is a file."""

    def __init__(self, folder: Path, class_name: str, host: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True)
        self.log = folder / "log"
        # the programs of this test must not reach the executors: their environment is that of their worker
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "NUMBA_", "VIRTUAL_ENV"))
        }
        command = [str(_SPARK_CLASS), class_name, "--host", host, "--port", "0", "--webui-port", "0", *arguments]
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=output,
                stderr=output,
                env={**inherited, **_DAEMON, **environment},
                start_new_session=True,
            )

    def wait_for(self, line: re.Pattern[str]) -> re.Match[str]:
        """Wait until the log has such a line."""
        found = eventually(
            f"{self.log} has {line.pattern!r}",
            lambda: line.search(self.log.read_text()),
            unless=lambda: self.log.read_text() if not self.is_running else None,
        )
        assert found is not None
        return found

    def kill(self) -> None:
        """Kill the daemon and its executors at once, as the loss of their machine does."""
        for pid in session_states(self.process.pid):
            _signal(pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether the daemon has not ended."""
        return self.process.poll() is None


class Worker(Daemon):
    """A worker, with the executors that it has started."""

    def __init__(self, folder: Path, host: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        self.work = folder / "work"
        options = ["--work-dir", str(self.work), *arguments]
        super().__init__(folder, "org.apache.spark.deploy.worker.Worker", host, options, environment)

    def executors(self) -> list[int]:
        """Process ids of the JVMs of its executors."""
        return [pid for pid in session_states(self.process.pid) if _EXECUTOR in _command(pid)]

    def halted(self) -> list[int]:
        """Process ids of Python workers that halt at a failpoint."""
        return [pid for pid, state in session_states(self.process.pid).items() if state == "T"]

    def resume(self) -> None:
        """Let halted Python workers continue."""
        for pid in self.halted():
            _signal(pid, signal.SIGCONT)

    def kill_executor(self) -> int:
        """Kill an executor and its Python workers; return the process id of its JVM."""
        executor = eventually(f"worker {self.process.pid} has an executor", self.executors)[0]
        for pid in family(executor):
            _signal(pid, signal.SIGKILL)
        return executor


class SparkCluster:
    """A master and its workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.master = Daemon(folder / "master", "org.apache.spark.deploy.master.Master", _MASTER_HOST, [], {})
        self.workers: list[Worker] = []
        self.address = ""

    def wait_for_master(self) -> None:
        """Wait until the master listens."""
        self.address = self.master.wait_for(_MASTER_STARTED)[1]

    def add_worker(self, cores: int = 1, memory: str = "1g", environment: Mapping[str, str] | None = None) -> Worker:
        """Start a worker on a host of its own: Spark starts no speculative copy of a task on the host of the first attempt.

        `environment` is that of its executors, beside the one of this process.
        """
        number = len(self.workers)
        arguments = ["--cores", str(cores), "--memory", memory, self.address]
        worker = Worker(self._folder / f"worker-{number}", f"127.0.0.{number + 2}", arguments, environment or {})
        self.workers.append(worker)
        return worker

    @property
    def running(self) -> list[Worker]:
        """The workers that were not killed."""
        return [worker for worker in self.workers if worker.is_running]

    def wait_for_workers(self) -> None:
        """Wait until all workers are registered."""
        for worker in self.workers:
            worker.wait_for(_WORKER_REGISTERED)

    def logs_of_executors(self) -> str:
        """Standard error of all executors so far."""
        return "".join(log.read_text(errors="replace") for worker in self.workers for log in sorted(worker.work.rglob("stderr")))

    def stop(self) -> None:
        """End every process."""
        for daemon in (*self.workers, self.master):
            daemon.kill()


@contextmanager
def spark_cluster(
    folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g", environment: Mapping[str, str] | None = None
) -> Iterator[SparkCluster]:
    """A running cluster, with `cores` and `memory` per worker."""
    cluster = SparkCluster(folder)
    try:
        cluster.wait_for_master()
        for _ in range(workers):
            cluster.add_worker(cores, memory, environment)
        cluster.wait_for_workers()
        yield cluster
    finally:
        cluster.stop()


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
