"""Checks of clocks: lag in time, expiry and the age of samples compare this machine's clock with those of others."""

import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta

from coordinator_core.sources.kafka import KafkaSource
from pipelines.doctor.finding import CheckResult, ok, problem, warning
from pipelines.doctor.subject import Subject
from pipelines.doctor.tables import folder_of, in_words

#: Differences of clocks that NTP keeps away, and those that make lag in time and expiry wrong.
_WARNING_MS, _PROBLEM_MS = 2_000, 60_000
_REMEDY = "synchronize the clocks with NTP (chrony, systemd-timesyncd) on both machines"


def brokers(subject: Subject) -> Iterator[CheckResult]:
    """The newest record of the log: brokers have written it, so its time cannot be after the present."""
    with KafkaSource(str(subject.address), subject.kafka) as source:
        starts, ends = source.earliest_offsets(), source.end_offsets()
        newest = {partition: (end - 1, end) for partition, end in ends.items() if end > starts[partition]}
        times = [int(columns.timestamp.max()) for _, columns in source.read_many(newest) if len(columns)]
    if not times:
        yield ok("no records to compare the clock with")
        return
    yield judged(max(times) - subject.clock_ms(), "the newest record of the log", "the brokers")


def store(subject: Subject) -> Iterator[CheckResult]:
    """A file that is written into the folder of tables: a server of a network file system sets its time."""
    folder = folder_of(subject)
    if not folder.is_dir():
        return
    try:
        before = subject.clock_ms()
        with tempfile.NamedTemporaryFile(dir=folder, prefix="_doctor-") as file:
            file.write(b"-")
            file.flush()
            written = os.stat(file.name).st_mtime_ns // 1_000_000
    except OSError as error:
        yield problem(f"cannot write a file into {folder}: {error.strerror}", "see the findings about the folder of tables")
        return
    ahead = written - subject.clock_ms() if written > before else min(0, written - before)
    if abs(ahead) > _WARNING_MS:
        yield _different(ahead, f"the file system of {folder}")
    else:
        yield ok(f"the clock of the file system of {folder} agrees")


def judged(ahead_ms: int, what: str, party: str) -> CheckResult:
    """`what` has a time that is `ahead_ms` after the present; a time in the past is as it should be."""
    if ahead_ms > _WARNING_MS:
        return _different(ahead_ms, party)
    return ok(f"{what} is {in_words(timedelta(milliseconds=max(0, -ahead_ms)))} old, not in the future")


def _different(ahead_ms: int, party: str) -> CheckResult:
    direction = "ahead of" if ahead_ms > 0 else "behind"
    found = f"the clock of {party} is {abs(ahead_ms) / 1000:.1f} s {direction} that of this machine"
    return problem(found, _REMEDY) if abs(ahead_ms) > _PROBLEM_MS else warning(found, _REMEDY)
