"""Requests for maintenance to the job that writes the tables, as two small files beside them.

`grouplake maintain` writes `_maintain_request.json`; the job answers in `_maintain_answer.json`, first that it has accepted the
request, then with the result. Files work in folders and in object stores, and neither side needs the address of the other.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from coordinator_core.health import KeepRule
from pipelines.tables.folder_files import FolderFiles
from pipelines.upkeep.maintain import Maintenance

REQUEST = "_maintain_request.json"
ANSWER = "_maintain_answer.json"

#: Seconds between two looks at the files: of a local folder, of an object store.
LOOK_SECONDS = {True: 1.0, False: 5.0}

ACCEPTED, DONE, FAILED = "accepted", "done", "failed"

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """A request, with the limits of the command that made it."""

    id: str
    limits: Maintenance


@dataclass(frozen=True)
class MaintenanceAnswer:
    """The job's answer to the request `id`: a state, and the lines of the result."""

    id: str
    state: str
    lines: tuple[str, ...] = ()


class RequestFiles:
    """The two files, for both sides."""

    def __init__(self, root: str) -> None:
        self._files = FolderFiles(root)

    @property
    def look_seconds(self) -> float:
        """Time between two looks."""
        return LOOK_SECONDS[self._files.is_local]

    def request(self) -> Request | None:
        """The open request, None without one. A file that is not a request counts as none."""
        return _parsed(self._files.read(REQUEST), _request_of)

    def answer(self) -> MaintenanceAnswer | None:
        """The newest answer, None without one."""
        return _parsed(self._files.read(ANSWER), _answer_of)

    def make(self, limits: Maintenance) -> Request:
        """Write a request, or return the open one of another command, whose result serves both."""
        waiting, answer = self.request(), self.answer()
        if waiting is not None and (answer is None or answer.id != waiting.id or answer.state == ACCEPTED):
            return waiting
        request = Request(uuid4().hex, limits)
        keep = [[rule.age_ms, rule.distance_ms] for rule in limits.keep]
        content = {
            "id": request.id,
            "history_days": limits.history_days,
            "vacuum_hours": limits.vacuum_hours,
            "target_file_mb": limits.target_file_mb,
            "keep": keep,
        }
        self._files.write(REQUEST, json.dumps(content).encode())
        return request

    def withdraw(self) -> None:
        """Remove the request and its answer."""
        self._files.remove(REQUEST)
        self._files.remove(ANSWER)

    def write_answer(self, request: Request, state: str, lines: Iterable[str] = ()) -> None:
        """MaintenanceAnswer a request; the last answer removes it."""
        content = {"id": request.id, "state": state, "lines": list(lines)}
        self._files.write(ANSWER, json.dumps(content).encode())
        if state != ACCEPTED:
            self._files.remove(REQUEST)


def wait_for_answer(
    files: RequestFiles, request: Request, accept_seconds: float, is_job_gone: Callable[[], bool]
) -> MaintenanceAnswer | None:
    """Wait for the last answer to a request. None if no job accepts it within `accept_seconds`, or if the job has ended.

    Raises:
        TablesError: the files cannot be read or written.
    """
    until, is_accepted = time.monotonic() + accept_seconds, False
    while True:
        answer = files.answer()
        if answer is not None and answer.id == request.id:
            if answer.state != ACCEPTED:
                files.withdraw()
                return answer
            is_accepted = True
        if is_job_gone() or (not is_accepted and time.monotonic() >= until):
            files.withdraw()
            return None
        time.sleep(min(files.look_seconds, 0.5))


def _parsed(content: bytes | None, parse: Callable[[dict[str, Any]], T]) -> T | None:
    try:
        return None if content is None else parse(json.loads(content))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _request_of(found: dict[str, Any]) -> Request:
    keep = tuple(KeepRule(_limit(age), _limit(distance)) for age, distance in found["keep"])
    days, hours, megabytes = (_limit(found[name]) for name in ("history_days", "vacuum_hours", "target_file_mb"))
    return Request(str(found["id"]), Maintenance(days, hours, megabytes, keep))


def _limit(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value


def _answer_of(found: dict[str, Any]) -> MaintenanceAnswer:
    return MaintenanceAnswer(str(found["id"]), str(found["state"]), tuple(map(str, found["lines"])))
