"""What an observer of batches receives: complete batches, failed ones, and each of them once."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from created_tables import created_tables

from pipelines.runtime.errors import AnotherWriter
from pipelines.runtime.phases import EndedBatch, Phases, observe_batches
from pipelines.tables.writer import TablesWriter

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def finish(writer: TablesWriter, phases: Phases) -> None:
    writer.begin()
    writer.finish(phases, AT, era="4", retention_ms=1, next_offsets={}, records_read=5, records_kept=2)


def test_a_batch_is_reported_with_each_of_its_phases(tmp_path: Path) -> None:
    writer, seen = TablesWriter.claim(created_tables(tmp_path)), list[EndedBatch]()
    phases = Phases(AT)
    with observe_batches(seen.append):
        for rows in (3, 4):
            with phases.timed("write_offsets", rows):
                pass
        phases.add("sample", 1_000, 1_250)
        finish(writer, phases)
    finish(writer, Phases(AT))
    (batch,) = seen
    assert (batch.batch_id, batch.records_read, batch.records_kept, batch.error) == (0, 5, 2, None)
    assert [(phase.name, phase.rows) for phase in batch.phases] == [("write_offsets", 3), ("write_offsets", 4), ("sample", None)]
    assert batch.started_ns == batch.phases[2].started_ns == 1_000_000_000
    assert batch.phases[2].ended_ns == 1_250_000_000
    assert phases.ms == {"write_offsets": phases.ms["write_offsets"], "sample": 250}
    assert batch.ended_ns > batch.phases[1].ended_ns >= batch.phases[1].started_ns


def test_a_batch_of_a_job_that_lost_its_tables_has_failed(tmp_path: Path) -> None:
    store, seen = created_tables(tmp_path), list[EndedBatch]()
    writer = TablesWriter.claim(store)
    TablesWriter.claim(store)
    with observe_batches(seen.append), pytest.raises(AnotherWriter):
        finish(writer, Phases(AT))
    assert [(batch.batch_id, type(batch.error)) for batch in seen] == [(None, AnotherWriter)]


def test_the_first_error_of_a_batch_is_its_error() -> None:
    seen, phases = list[EndedBatch](), Phases(AT)
    error = ValueError("first")
    with observe_batches(seen.append):
        with pytest.raises(ValueError, match="first"), phases.timed("read"):
            raise error
        with pytest.raises(OSError, match="second"), phases.timed("read"):
            raise OSError("second")
        phases.finished(1, 2, 3)
    assert [batch.error for batch in seen] == [error]
    assert [phase.has_failed for phase in seen[0].phases] == [True]
