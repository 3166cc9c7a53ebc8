"""The samples of end offsets that the tables have, and those of this process that they do not need."""

from collections.abc import Sequence

import pyarrow as pa

from coordinator_core.health import EndOffsetSample, samples_table
from coordinator_core.health.sample_tables import END_OFFSETS_SCHEMA

#: A run of equal samples is stored at its ends, and at least this often: a restart loses no more than this of its end.
_STORED_EVERY_MS = 600_000

_Key = tuple[str, int]


class SampleHistory:
    """Stored samples, and for each partition the newest sample of an unfinished run of equal ones."""

    def __init__(self, stored: pa.Table) -> None:
        """`stored` has the columns of `end_offsets`, in any order."""
        self._stored = stored.select(END_OFFSETS_SCHEMA.names)
        self._last_stored: dict[_Key, EndOffsetSample] = {}
        self._unfinished: dict[_Key, EndOffsetSample] = {}

    def add(self, samples: Sequence[EndOffsetSample]) -> pa.Table:
        """Add the newest sample of each partition. Returns the rows to store, oldest first per partition."""
        rows: list[EndOffsetSample] = []
        for sample in samples:
            key = sample.topic, sample.partition
            last = self._last_stored.get(key)
            is_same = last is not None and last.values == sample.values
            if last is not None and is_same and sample.answered_at_ms - last.answered_at_ms < _STORED_EVERY_MS:
                self._unfinished[key] = sample
                continue
            end_of_run = self._unfinished.pop(key, None)
            if end_of_run is not None and not is_same:
                rows.append(end_of_run)
            rows.append(sample)
            self._last_stored[key] = sample
        stored = samples_table(rows)
        self._stored = pa.concat_tables([self._stored, stored])
        return stored

    def table(self) -> pa.Table:
        """All samples, folded: for each run of equal samples its first and its last one."""
        return pa.concat_tables([self._stored, samples_table(self._unfinished.values())])
