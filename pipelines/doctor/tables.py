"""Checks of the folder of tables: access, space, layout, writer, last batch, quarantine."""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.doctor.finding import CheckResult, failed, ok, problem, warning
from pipelines.doctor.subject import Subject
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import ForeignFeature
from pipelines.tables import definitions
from pipelines.tables.data_age import AgeState, data_age
from pipelines.tables.foreign_commits.log import expect_writable_protocol
from pipelines.tables.layout import expect_writable, layout_of
from pipelines.tables.location import local_folder
from pipelines.tables.writer import expect_known_tables
from pipelines.tables.writer_lock import lock_holder

_GIB = 2**30
#: A batch needs less than this; a first load of ten million offsets takes about a GiB.
_LEAST_BYTES, _FEW_BYTES = 100 * 2**20, 2 * _GIB
#: Age of the last batch that most schedules exceed only after a failure; for a job without an interval.
_OLD_BATCH = timedelta(days=1)


def folder_of(subject: Subject) -> Path:
    """The folder of the tables, which is local."""
    assert subject.tables is not None
    found = local_folder(subject.tables)
    assert found is not None
    return found


def folder(subject: Subject) -> Iterator[CheckResult]:
    """Access to the folder, and free space on its file system."""
    path = folder_of(subject)
    existing = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not existing.is_dir():
        yield problem(f"{existing} is a file", "name a folder with --tables")
        return
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        yield problem(
            f"cannot write into {existing}", "give the user of the job this folder (chown), or mount the file system writable"
        )
        return
    yield ok(f"{path} is writable" if path.exists() else f"{path} does not exist; the first run creates it in {existing}")
    usage = shutil.disk_usage(existing)
    found = f"{usage.free / _GIB:.1f} of {usage.total / _GIB:.1f} GiB are free"
    remedy = "free space: `grouplake maintain`, a lower maintain.history_days, or a larger disk"
    if usage.free < _LEAST_BYTES:
        yield problem(found, remedy)
    elif usage.free < _FEW_BYTES:
        yield warning(found, remedy)
    else:
        yield ok(found)


def layout(subject: Subject) -> Iterator[CheckResult]:
    """The tables were made by this version or an older one, with the same era."""
    last = subject.last
    if last is None:
        return
    batches = subject.store.table("batches")
    expect_writable(batches, subject.store.root)
    expect_known_tables(subject.store, last)
    if last.era != subject.era.name:
        yield problem(
            f"the tables were made with era {last.era}, not {subject.era.name}",
            f'set job.era = "{last.era}" (or --era {last.era}), or use another folder',
        )
    else:
        yield ok(f"layout {layout_of(batches, subject.store.root)}, era {last.era}")


def features(subject: Subject) -> Iterator[CheckResult]:
    """The protocols of all tables are those that Grouplake and delta-rs read and write."""
    is_sound = True
    for name in (*definitions.WRITE_ORDER, *definitions.ALERTS):
        if not subject.store.has(name):
            continue
        try:
            expect_writable_protocol(subject.store.path(name), subject.store.table(name))
        except ForeignFeature as error:
            is_sound = False
            yield failed(error)
    if is_sound and subject.last is not None:
        yield ok("Grouplake and delta-rs read and write the protocols of all tables")


def writer(subject: Subject) -> Iterator[CheckResult]:
    """The process that has the lock."""
    holder = lock_holder(str(folder_of(subject)))
    if holder is None:
        yield ok("no process writes the tables")
    else:
        command, _, process = holder.partition("\n")
        yield ok(f"the tables are being written by `{command}` ({process})")


def last_batch(subject: Subject) -> Iterator[CheckResult]:
    """The newest batch and its age."""
    last = subject.last
    if last is None:
        yield ok("no batch yet")
        return
    finished = last.finished_at.astimezone(UTC)
    now = datetime.fromtimestamp(subject.clock_ms() / 1000, UTC)
    age = now - finished
    found = f"the last batch is {last.batch_id}, finished {finished:%Y-%m-%dT%H:%M:%SZ}, {in_words(age)} ago"
    expected = data_age(last, None, now)
    is_old = age > _OLD_BATCH if expected.state is AgeState.NO_EXPECTATION else expected.is_old
    if is_old:
        yield warning(found, "check that the job is scheduled, and its last output")
    else:
        yield ok(found)


def quarantine(subject: Subject) -> Iterator[CheckResult]:
    """Rows of `quarantine`: what could not be decoded is missing in the other tables."""
    if subject.last is None:
        return
    reasons = "SELECT reason, count(*) AS n FROM quarantine GROUP BY reason ORDER BY n DESC"
    found = Snapshot(subject.store, subject.last).query(reasons)

    if not found.num_rows:
        yield ok("quarantine is empty")
        return
    row = found.to_pylist()[0]
    yield warning(
        f"quarantine has {sum(found['n'].to_pylist()):,} rows; most frequent: {row['reason']} ({row['n']:,})",
        f'read them: grouplake sql --tables {subject.tables} "SELECT * FROM quarantine"; report new record layouts as a bug',
    )


def in_words(age: timedelta) -> str:
    """A duration in its largest unit."""
    seconds = age.total_seconds()
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
