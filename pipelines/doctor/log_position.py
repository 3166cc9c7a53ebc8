"""Checks that the logs still have the offset of every partition at which the tables continue."""

from collections.abc import Iterator

from pipelines.doctor.finding import CheckResult, ok
from pipelines.doctor.subject import Subject
from pipelines.source.log_probe import probe_log, probe_transactions
from pipelines.source.ranges import new_offsets
from pipelines.tables.store import TRANSACTIONS_TOPIC_ID


def position(subject: Subject) -> Iterator[CheckResult]:
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


def position_of_transactions(subject: Subject) -> Iterator[CheckResult]:
    """The same checks of `__transaction_state`."""
    address, last = subject.transactions, subject.last
    assert address is not None
    next_offsets = (last.transaction_offsets if last else None) or {}
    topic_id = subject.store.topic_id(TRANSACTIONS_TOPIC_ID) if last else None
    _, ends = probe_transactions(address, subject.kafka, next_offsets, topic_id)
    if not ends:
        yield ok(f"{address}: the topic does not exist yet; brokers create it for the first transactional producer")
    elif not next_offsets:
        yield ok(f"{address}: {len(ends)} partitions, read from their start by the first run with --transactions")
    else:
        new = new_offsets(next_offsets, ends)
        yield ok(f"{address} has every offset at which the tables continue; {new:,} offsets are new")
