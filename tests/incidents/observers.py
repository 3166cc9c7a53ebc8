"""Poll every reader of the tables, and keep each answer with its time.

JSON of pages, `/metrics`, `lag`, `sql`, tools of agents, notifications of alerts.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from agent import Question, answers
from metrics_text import series
from patience import PATIENCE_SECONDS

_PROGRAM = str(Path(sys.executable).with_name("grouplake"))
_PAUSE_SECONDS = 0.2
_HOT = "klag_hot_partition"

#: Reader → query of `grouplake sql`.
QUERIES: Mapping[str, str] = {
    "sql status": "SELECT group_id, status, rule, topic, partition, detail, findings, evaluated_at FROM group_status",
    "sql expiry": "SELECT group_id, topic, partition, expires_at FROM expiring_offsets WHERE expires_at IS NOT NULL",
}
#: The same at the end of a run, over all of it.
LAST_QUERIES: Mapping[str, str] = {
    "sql batches": "SELECT batch_id, started_at, finished_at FROM batches ORDER BY batch_id",
    "sql lag_history": "SELECT * FROM lag_history ORDER BY group_id, sampled_at",
}


@dataclass
class Observation:
    """An answer of a page such as `page group`, or of a command. `code`: HTTP status or exit code. `stderr`: of a command."""

    reader: str
    asked: float
    at: float
    code: int
    body: Any
    stderr: str = ""
    group: str | None = None


class Observers:
    """Threads that poll until the context ends. `url` is the dashboard's address, and `cluster` its name of the tables.

    `topic` is the one whose page is looked at.
    """

    def __init__(
        self, url: str, cluster: str, tables: Path, groups: Sequence[str], topic: str, seconds: Mapping[str, float]
    ) -> None:
        self.observations: list[Observation] = []
        self._url = url
        self._cluster = cluster
        self._tables = str(tables)
        self._groups = groups
        self._closing = threading.Event()
        self._failures: list[BaseException] = []
        polls: list[tuple[float, Callable[[], None]]] = [
            (seconds["ready"], self._page("ready", "/ready")),
            (seconds["overview"], self._page("page overview", f"/c/{cluster}/index.json")),
            (seconds["groups"], self._page("page groups", f"/c/{cluster}/groups.json")),
            (seconds["topic"], self._page("page topic", f"/c/{cluster}/topics/{topic}.json")),
            (seconds["metrics"], self._metrics),
            *((seconds["group"], self._group_page(group)) for group in groups),
        ]
        commands: list[tuple[float, Callable[[], None]]] = [
            (seconds["lag"], self._lag),
            *((seconds["sql"], self._sql(reader, query)) for reader, query in QUERIES.items()),
        ]
        agent: list[tuple[float, Callable[[], None]]] = [(seconds["agent"], self._agent)]
        self._threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in (polls, commands, agent)]

    def __enter__(self) -> "Observers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def failure(self) -> str | None:
        """The reason why an observer has ended."""
        return repr(self._failures[0]) if self._failures else None

    def observe_all(self, since: float) -> None:
        """Observe what is told about the whole run, which began at a time."""
        earlier = quote(datetime.fromtimestamp(since, UTC).isoformat())
        self._page("page changes", f"/c/{self._cluster}/changes.json?from={earlier}")()
        for reader, query in LAST_QUERIES.items():
            self._sql(reader, query)()

    def _run(self, polls: Sequence[tuple[float, Callable[[], None]]]) -> None:
        # the first looks are spread, so that pages of groups do not come all at once
        due = [time.monotonic() + every * number / len(polls) for number, (every, _) in enumerate(polls)]
        try:
            while not self._closing.wait(_PAUSE_SECONDS):
                for number, (every, poll) in enumerate(polls):
                    if time.monotonic() >= due[number]:
                        due[number] = time.monotonic() + every
                        poll()
        except BaseException as error:
            self._failures.append(error)

    def _page(self, reader: str, path: str, group: str | None = None) -> Callable[[], None]:
        def poll() -> None:
            asked = time.time()
            response = httpx.get(f"{self._url}{path}", timeout=PATIENCE_SECONDS)
            self.observations.append(Observation(reader, asked, time.time(), response.status_code, response.json(), group=group))

        return poll

    def _group_page(self, group: str) -> Callable[[], None]:
        return self._page("page group", f"/c/{self._cluster}/groups/{quote(group, safe='')}.json", group)

    def _metrics(self) -> None:
        asked = time.time()
        response = httpx.get(f"{self._url}/metrics", timeout=PATIENCE_SECONDS)
        hot = [{**dict(labels), "per_second": value / 100} for labels, value in series(response.content).get(_HOT, {}).items()]
        self.observations.append(Observation("metrics", asked, time.time(), response.status_code, hot))

    def _agent(self) -> None:
        for told in answers(f"{self._url}/mcp", [Question(group) for group in self._groups]):
            self.observations.append(
                Observation(
                    "agent", told.asked, told.answered, 404 if told.fields is None else 200, told.fields, group=told.group
                )
            )

    def _lag(self) -> None:
        self._command("lag", "lag", "--tables", self._tables, "--all-groups", "--seconds", "--status", "--transactions")

    def _sql(self, reader: str, query: str) -> Callable[[], None]:
        return lambda: self._command(reader, "sql", "--tables", self._tables, query)

    def _command(self, reader: str, *arguments: str) -> None:
        asked = time.time()
        done = subprocess.run([_PROGRAM, *arguments, "--format", "json"], capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.observations.append(Observation(reader, asked, time.time(), done.returncode, rows, done.stderr))


def alert_observations(bodies: Sequence[tuple[float, Any]]) -> list[Observation]:
    """Notifications that a webhook got, with the times of their arrival."""
    return [Observation("alerts", at, at, 200, body) for at, body in bodies]


def write_observations(path: Path, observations: Sequence[Observation]) -> None:
    """One JSON object a line."""
    path.write_text("".join(json.dumps(asdict(each)) + "\n" for each in observations))


def read_observations(path: Path) -> list[Observation]:
    """The observations of a file."""
    return [Observation(**json.loads(line)) for line in path.read_text().splitlines()]
