"""Check that the log still has the offset of every partition at which the tables continue."""

from collections.abc import Iterator

from pipelines.doctor.finding import Finding, ok
from pipelines.doctor.subject import Subject
from pipelines.job.log_probe import probe_log
from pipelines.source.ranges import new_offsets


def position(subject: Subject) -> Iterator[Finding]:
    """The checks of the log with which a run begins."""
    assert subject.address is not None
    last = subject.last
    topic_id = subject.store.topic_id() if last else None
    _, ends = probe_log(subject.address, subject.kafka, last.next_offsets if last else {}, topic_id)
    if last is None:
        yield ok(f"{subject.address}: {len(ends)} partitions, read from their start by the first run")
        return
    new = new_offsets(last.next_offsets, ends)
    yield ok(f"the log has every offset at which the tables continue; {new:,} offsets are new")
