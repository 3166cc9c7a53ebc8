"""Kill runs of `killed_runs` with `kill -9`, at random moments or at named steps, while a reader polls the tables.

    python tests/support/kill_harness.py FOLDER --kills 200 --seed 1
    python tests/support/kill_harness.py FOLDER --points claimed after:offsets

Every run is a fork of this process, which has loaded everything and has no threads of its own. A run therefore takes only as
long as its work, and 200 of them are affordable. The report is one JSON object on standard output; exit code 1 if there are
findings.
"""

import argparse
import json
import os
import pickle
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eventually import NotReached, eventually
from patience import LIMIT_SECONDS

# threads that a library starts would not exist in a fork
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

from command_polls import answer_of, checked, queried
from crash_log import CrashLog
from killed_runs import Workload
from table_contents import contents_of, digest

from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime import failpoints
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions

#: One poll in this many is also made by the commands, which take a second each to start.
_COMMANDS_EVERY = 10

#: A snapshot is read again after this many others.
_HELD_FOR = 12


@dataclass
class Report:
    """Counts of the harness, and its findings in `wrong`."""

    kills: int = 0
    rounds: int = 0
    polls: int = 0
    read_again: int = 0
    commands: int = 0
    states_seen: int = 0
    points: list[str] = field(default_factory=list)
    interrupted: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Harness:
    """Kills runs in fresh folders below `folder`."""

    def __init__(self, folder: Path, workload: Workload) -> None:
        self.report = Report()
        self._folder = folder
        self._workload = workload
        workload.warm_up()
        definitions.tables()
        self._states, self._answers, self._span = self._undisturbed()

    def kill_at_random(self, kills: int, draw: random.Random) -> None:
        """Make rounds of runs, each killed within a few batches of its first write, until `kills` is reached."""
        while self.report.kills < kills:
            with self._round() as root:
                while self.report.kills < kills:
                    ended = self._killed_run(root, after_seconds=draw.random() * self._span / 4)
                    if ended:
                        break
                self._finish(root)

    def kill_at(self, points: list[str]) -> None:
        """Make one round with one run for each point in turn."""
        with self._round() as root:
            for point in points:
                if self._killed_run(root, point=point):
                    self.report.wrong.append(f"{point} was not reached")
                    break
            self._finish(root)

    @contextmanager
    def _round(self) -> Iterator[Path]:
        self.report.rounds += 1
        root = self._folder / f"round-{self.report.rounds}"
        results = self._folder / f"reader-{self.report.rounds}.json"
        stop = self._folder / f"stop-{self.report.rounds}"
        # with no retention for files, `maintain` deletes files that a reader still needs
        reader = _fork(lambda: _read(root, self._states, self._answers, stop, results)) if self._workload.vacuum_hours else None
        try:
            yield root
        finally:
            stop.touch()
            if reader is not None and _ended(reader) != 0:
                self.report.wrong.append("the reader ended with an error")
            found = json.loads(results.read_text()) if results.exists() else {}
            self.report.polls += found.get("polls", 0)
            self.report.read_again += found.get("read_again", 0)
            self.report.commands += found.get("commands", 0)
            self.report.states_seen += found.get("states", 0)
            self.report.wrong += found.get("wrong", [])

    def _killed_run(self, root: Path, *, after_seconds: float | None = None, point: str | None = None) -> bool:
        """Return whether the run ended before it was killed."""
        begun, begins = os.pipe()

        def work() -> None:
            if point is not None:
                os.environ[failpoints.VARIABLE] = point
            os.write(begins, b"!")
            self._workload.run(root)

        child = _fork(work)
        os.close(begins)
        os.read(begun, 1)
        os.close(begun)
        if after_seconds is not None:
            time.sleep(after_seconds)
            os.kill(child, signal.SIGKILL)
        status = _ended(child)
        if status == 0:
            return True
        if status != -signal.SIGKILL:
            self.report.wrong.append(f"a run ended with {status}")
            return True
        self.report.kills += 1
        self.report.interrupted[_left_behind(root)] += 1
        if point is not None:
            self.report.points.append(point)
        return False

    def _finish(self, root: Path) -> None:
        """Do the remaining work undisturbed; then the tables must equal those of an undisturbed run."""

        def verify() -> None:
            self._workload.run(root)
            found = digest(contents_of(Snapshot.open(str(root))))
            assert found == self._states[-1], "tables differ from those of an undisturbed run"
            assert check(str(root)) == [], check(str(root))

        if _ended(_fork(verify)) != 0:
            self.report.wrong.append(f"{root}: not whole after the restart")

    def _undisturbed(self) -> tuple[list[str], list[str], float]:
        """Digests of the states that readers may see, the commands' answers to each, and how long a run takes alone."""
        results = self._folder / "undisturbed.pickle"

        def run() -> None:
            states = self._workload.states(self._folder / "undisturbed")
            # files of old states are kept only where the retention for readers is not zero
            kept = range(len(states)) if self._workload.vacuum_hours else ()
            answers = [answer_of(Snapshot.open(str(self._folder / "undisturbed"), str(number))) for number in kept]
            started = time.monotonic()
            self._workload.run(self._folder / "timed")
            span = time.monotonic() - started
            results.write_bytes(pickle.dumps(([digest(state) for state in states], answers, span)))

        assert _ended(_fork(run)) == 0
        undisturbed: tuple[list[str], list[str], float] = pickle.loads(results.read_bytes())
        return undisturbed


def _read(root: Path, states: list[str], answers: list[str], stop: Path, results: Path) -> None:
    """Poll what `sql` and `check` do, and read a held snapshot again later, until the stop file exists."""
    wrong: list[str] = []
    seen: dict[str, int] = {}
    polls = read_again = commands = 0
    held: tuple[Snapshot, str] | None = None
    while not stop.exists() and not wrong:
        try:
            snapshot = Snapshot.open(str(root))
            state = digest(contents_of(snapshot))
            findings = check(str(root))
        except UsageError as error:
            # readers see no state before the first batch
            if seen:
                wrong.append(f"a reader met: {error}")
            continue
        polls += 1
        if state not in states:
            wrong.append(f"a reader saw a state that the log never had (batch {snapshot.batch.batch_id})")
        elif seen and states.index(state) < max(seen.values()):
            wrong.append("a reader saw the tables go back")
        seen[state] = states.index(state) if state in states else -1
        wrong += [f"check, while the tables are written: {found}" for found in findings]
        if polls % _COMMANDS_EVERY == 0:
            commands += 1
            answer, failure = queried(root)
            if answer not in answers:
                wrong.append(f"`grouplake sql` met what the log never had: {failure}")
            elif max(number for number, known in enumerate(answers) if known == answer) < max(seen.values()):
                wrong.append("`grouplake sql` saw the tables go back")
            wrong += filter(None, [checked(root)])
        if held is None:
            held = snapshot, state
        elif polls % _HELD_FOR == 0:
            read_again += 1
            if digest(contents_of(held[0])) != held[1]:
                wrong.append("a snapshot changed under its reader")
            held = None
    counts = {"polls": polls, "read_again": read_again, "commands": commands, "states": len(seen)}
    results.write_text(json.dumps({**counts, "wrong": wrong}))


def _left_behind(root: Path) -> str:
    """The table that a kill interrupted: the one with the newest log entry under the folder of tables."""
    logs = {path.parent.parent.name: path.stat().st_mtime_ns for path in root.glob("*/_delta_log/*.json")}
    return max(logs, key=lambda name: logs[name]) if logs else "nothing"


def _fork(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _ended(pid: int) -> int:
    """Exit code of a child, negative for the signal that ended it."""
    try:
        _, status = eventually(
            f"process {pid} ends",
            lambda: os.waitpid(pid, os.WNOHANG),
            lambda ended: ended[0] == pid,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=0.002,
        )
    except NotReached:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return 1
    return os.waitstatus_to_exitcode(status)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--points", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--vacuum-hours", type=int, default=1)
    options = parser.parse_args()
    log = CrashLog(options.folder / "log", options.seed)
    log.grow(options.steps)
    started = time.monotonic()
    harness = Harness(options.folder, Workload(log, options.vacuum_hours))
    if options.points:
        harness.kill_at(options.points)
    if options.kills:
        harness.kill_at_random(options.kills, random.Random(options.seed))
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({"seed": options.seed, "seconds": seconds, **vars(harness.report)}))
    return 1 if harness.report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
