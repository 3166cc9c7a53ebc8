"""Comparison of the compiled columns with the scalar reader, for any bytes."""

from scalar_logs import read_log

from coordinator_core.log.columns import RecordColumns, compiled_end_of, parse_columns, scalar_end_of, to_log_records
from coordinator_core.log.damage import ENDS_READING, Damage
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.reader import NO_END, frames


def check(data: bytes, start: int = 0, end: int | None = None) -> RecordColumns:
    """Assert that both readers agree, and that every slice lies in its buffer; return the columns."""
    columns = parse_columns(data, start, end)
    items = list(read_log(data, 3, start, NO_END if end is None else end))
    assert list(to_log_records(columns, 3)) == [item for item in items if isinstance(item, LogRecord)]
    assert list(columns.damages) == [item for item in items if isinstance(item, Damage)]
    for starts, lengths in ((columns.key_start, columns.key_length), (columns.value_start, columns.value_length)):
        assert (lengths >= -1).all()
        assert (starts >= 0).all()
        assert (starts + lengths.clip(0) <= len(columns.buffer)).all()
    assert 0 <= columns.consumed <= len(data)
    assert columns.next_offset >= start
    covered = list(frames(memoryview(data), start, NO_END if end is None else end))
    whole = [frame for frame in covered if frame.problem not in ENDS_READING]
    behind = max((frame.last_offset + 1 for frame in whole), default=0)
    assert columns.next_offset == max(start, behind if end is None else min(behind, end))
    if start == 0 and end is None:
        found = compiled_end_of(data)
        assert (found.offset, found.consumed) == (columns.next_offset, columns.consumed)
        assert scalar_end_of(data, len(covered)) == found
        assert not covered or scalar_end_of(data, len(covered) - 1) is None
    return columns
