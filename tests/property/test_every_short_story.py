"""Every sequence of a few events on one key, cut into two ranges at every position.

All sequences run in parallel in one log, each with a group and producers of its own, so that thousands cost one reduction.
"""

from itertools import product

import pytest
from offset_logs import PARTITION
from reduction_merge import loaded, merged

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.entries import LogRecord

#: Kind of event and its producer in the story; None for a plain record.
ONE_PRODUCER = [("value", None), ("value", 0), ("tombstone", None), ("tombstone", 0), ("commit", 0), ("abort", 0)]
TWO_PRODUCERS = [*ONE_PRODUCER, ("value", 1), ("commit", 1)]

_MARKERS = {"commit": b"\0\0\0\1", "abort": b"\0\0\0\0"}


def _log(stories: list[tuple[tuple[str, int | None], ...]]) -> list[LogRecord]:
    """The stories interleaved: first their first events, then their second ones and so on."""
    records: list[LogRecord] = []
    for step in range(len(stories[0])):
        for number, story in enumerate(stories):
            kind, producer = story[step]
            producer_id = -1 if producer is None else 2 * number + producer
            value: bytes | None
            if kind in _MARKERS:
                key, value = _MARKERS[kind], bytes(6)
            else:
                commit = OffsetCommitValue(100 - step) if kind == "value" else None
                key, value = encode(Record(1, OffsetCommitKey(f"g{number}", "t", 0), commit, None if commit is None else 1))
            offset = len(records)
            is_control = kind in _MARKERS
            records.append(LogRecord(PARTITION, offset, 0, key, value, producer_id, 0, producer_id != -1, is_control, offset))
    return records


@pytest.mark.parametrize("era", ["1", "4"])
@pytest.mark.parametrize(("alphabet", "length"), [(ONE_PRODUCER, 5), (TWO_PRODUCERS, 4)], ids=["one producer", "two producers"])
def test_every_story_merges_to_what_it_loads_to(alphabet: list[tuple[str, int | None]], length: int, era: str) -> None:
    for beginning in alphabet:
        stories = [(beginning, *rest) for rest in product(alphabet, repeat=length - 1)]
        records = _log(stories)
        expected = loaded(records, era)
        for cut in range(length):
            assert merged(records, era, [cut * len(stories)]) == expected
