"""Leaks of libraries, and of tests that failed, reported at the end of a run. Others fail the test during which they are found.

A resource that nobody closed is found when the garbage collector meets it, in any later test. Python then calls
`sys.unraisablehook`, and with `filterwarnings = error` pytest fails that test, which a library's leak must not do.

The innermost line outside of the standard library that made a resource is its origin. For sockets it is noted when they are made;
that of other resources is known while tracemalloc runs (`PYTHONTRACEMALLOC=20 make test`). Without it, a finalizer that a library
defines is the library's. A resource whose origin is unknown counts as ours.

A test that failed in the middle may have left processes and files open. The run is red or repeats that test already, so what is
found after it in the same process is only reported: a test after it, which passed, is not to blame.
"""

import gc
import os
import socket
import sys
import sysconfig
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import pytest

_INSTALLED = ("site-packages", "dist-packages")
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
#: Key of a worker's leaks in what it sends at its end.
_OUTPUT = "library_leaks"


@dataclass(frozen=True)
class Leak:
    """An unraisable exception: its origin as FILE:LINE or the test that failed, its text, and the test in which it was found."""

    origin: str
    text: str
    test: str


class LibraryLeaks:
    """A plugin that takes the leaks of libraries out of pytest's hands. Files under `own` that are not installed are our code."""

    def __init__(self, own: Path) -> None:
        self._own = str(own)
        self._leaks: list[Leak] = []
        self._origins: dict[int, str | None] = {}
        self._failed: str | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Come before the hook that pytest has set by now, and note the origin of every socket, until the run ends."""
        unraisable, initialize = sys.unraisablehook, socket.socket.__init__

        def note(made: socket.socket, *arguments: Any, **named: Any) -> None:
            self._origins[id(made)] = _first_origin(_frames(sys._getframe(1)))
            initialize(made, *arguments, **named)

        def hook(found: "sys.UnraisableHookArgs") -> None:
            source = self._source(found)
            if source is None:
                unraisable(found)
            else:
                self._leaks.append(Leak(source, _text(found), os.environ.get("PYTEST_CURRENT_TEST", "no test")))

        def restore() -> None:
            socket.socket.__init__ = initialize  # type: ignore[method-assign]  # undoes the line below
            sys.unraisablehook = unraisable

        socket.socket.__init__ = note  # type: ignore[method-assign, assignment]  # a subclass would not be what libraries instantiate
        sys.unraisablehook = hook
        session.config.add_cleanup(restore)

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]) -> None:
        """Note the first test of this process that failed by something else than a leak."""
        assert call.excinfo is not None
        if self._failed is None and not _is_leak(call.excinfo.value):
            self._failed = node.nodeid

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Find what is left, and send it to the process that reports."""
        gc.collect()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = [(leak.origin, leak.text, leak.test) for leak in self._leaks]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over the leaks of a worker. One that crashed has sent nothing."""
        self._leaks += [Leak(*each) for each in getattr(node, "workeroutput", {}).get(_OUTPUT, ())]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one line for each origin, with the number of its leaks."""
        by_origin: dict[str, list[Leak]] = {}
        for leak in self._leaks:
            by_origin.setdefault(leak.origin, []).append(leak)
        if by_origin:
            terminalreporter.section("leaks of libraries and of failed tests")
        for origin, leaks in sorted(by_origin.items()):
            terminalreporter.line(f"{origin}: {leaks[0].text} ({len(leaks)} times, first in {leaks[0].test})")

    def _source(self, found: "sys.UnraisableHookArgs") -> str | None:
        """Whose leak it is, unless it is one that fails a test."""
        origin = self._origin(found)
        if origin is not None and not self._is_ours(origin):
            return _short(origin)
        return None if self._failed is None else f"left by {self._failed}, which failed, or by tests after it"

    def _origin(self, found: "sys.UnraisableHookArgs") -> str | None:
        """The innermost line outside of the standard library that made the resource, or raised in a finalizer."""
        lost = _resource(found)
        if isinstance(lost, socket.socket) and id(lost) in self._origins:
            return self._origins[id(lost)]
        made = tracemalloc.get_object_traceback(lost)
        if made is not None:
            return _first_origin(f"{line.filename}:{line.lineno}" for line in reversed(made))
        finalizer = getattr(found.object, "__code__", None)
        if finalizer is None:
            return None
        raised: Iterable[str] = () if issubclass(found.exc_type, Warning) else reversed(list(_raised(found.exc_traceback)))
        return _first_origin([*raised, f"{finalizer.co_filename}:{finalizer.co_firstlineno}"])

    def _is_ours(self, origin: str) -> bool:
        return origin.startswith(self._own) and not any(f"/{name}/" in origin for name in _INSTALLED)


def _is_leak(error: BaseException) -> bool:
    """Whether this is what fails a test during which leaks were found."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_leak, error.exceptions))
    return isinstance(error, pytest.PytestUnraisableExceptionWarning)


def _resource(found: "sys.UnraisableHookArgs") -> object:
    """What leaked: the object, that of a finalizer written in Python, or the socket of a transport of asyncio."""
    lost = found.object
    for frame in _tracebacks(found.exc_traceback):
        if frame.tb_frame.f_code is getattr(lost, "__code__", None):
            lost = frame.tb_frame.f_locals.get("self", lost)
            break
    return getattr(lost, "_sock", None) or lost


def _tracebacks(traceback: TracebackType | None) -> Iterable[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _raised(traceback: TracebackType | None) -> Iterable[str]:
    return (f"{each.tb_frame.f_code.co_filename}:{each.tb_lineno}" for each in _tracebacks(traceback))


def _frames(frame: FrameType | None) -> Iterable[str]:
    while frame is not None:
        yield f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back


def _first_origin(lines: Iterable[str]) -> str | None:
    """The first of these lines, innermost first, that is not of the standard library."""
    return next((line for line in lines if not _is_standard(line)), None)


def _is_standard(line: str) -> bool:
    installed = any(f"/{name}/" in line for name in _INSTALLED)
    return line.startswith("<") or (line.startswith(_STANDARD_LIBRARY) and not installed)


def _short(origin: str) -> str:
    """The origin from the name of the library on."""
    for name in _INSTALLED:
        origin = origin.rpartition(f"/{name}/")[2]
    return origin


def _text(found: "sys.UnraisableHookArgs") -> str:
    return " ".join(f"{found.exc_type.__name__}: {found.exc_value}".split())[:200]
