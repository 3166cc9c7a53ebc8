"""Records of aborted transactions and markers are left out, wherever a response begins and ends."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.log.columns import columns_of, to_log_records
from coordinator_core.log.committed_records import committed_records
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import control_key

PRODUCERS = (7, 8, 9)
#: A record or the end of a transaction; without a producer, a record outside of transactions.
STEPS = st.lists(
    st.tuples(st.sampled_from((*PRODUCERS, -1)), st.sampled_from(("record", "record", "commit", "abort"))), max_size=40
)


def written(steps: Iterable[tuple[int, str]]) -> tuple[list[LogRecord], set[int], list[tuple[int, int, int]]]:
    """Records of the log, offsets of committed ones, and aborted transactions: producer, first and last offset.

    Open transactions end with a commit.
    """
    records: list[LogRecord] = []
    visible: set[int] = set()
    aborted: list[tuple[int, int, int]] = []
    opened: dict[int, list[int]] = {}
    for producer, what in [*steps, *((producer, "commit") for producer in PRODUCERS)]:
        offset = len(records)
        is_record = producer == -1 or what == "record"
        if is_record:
            key = b"key"
            if producer == -1:
                visible.add(offset)
            else:
                opened.setdefault(producer, []).append(offset)
        else:
            offsets = opened.pop(producer, [])
            key = control_key(ControlType.COMMIT if what == "commit" else ControlType.ABORT)
            if what == "commit":
                visible.update(offsets)
            elif offsets:
                aborted.append((producer, offsets[0], offset))
        records.append(LogRecord(0, offset, 1, key, b"", producer, 0, producer != -1, not is_record, offset))
    return records, visible, aborted


@given(STEPS, st.integers(0, 45), st.integers(0, 45))
def test_a_response_has_the_committed_records_of_its_range(steps: list[tuple[int, str]], start: int, length: int) -> None:
    records, visible, aborted = written(steps)
    end = min(start + length, len(records))
    part = columns_of(records[start:end], next_offset=end)
    overlapping = [(producer, first) for producer, first, last in aborted if last >= start and first < end]
    found = list(to_log_records(committed_records(part, overlapping), 0))
    assert [each.offset for each in found] == sorted(offset for offset in visible if start <= offset < end)
    assert all((each.producer_id, each.is_transactional, each.is_control) == (-1, False, False) for each in found)


def test_the_end_of_the_range_stays() -> None:
    records, _, aborted = written([(7, "record"), (7, "abort")])
    found = committed_records(columns_of(records, next_offset=4), [(producer, first) for producer, first, _ in aborted])
    assert (len(found), found.next_offset) == (0, 4)
