"""Storage of tables over simulated days: bounded by maintenance, growing without."""

from pathlib import Path

import pytest
from year_of_tables import Load, simulated

#: Entries of Delta logs remain for 30 days.
_LOG_DAYS = 30


@pytest.mark.slow
@pytest.mark.debian
@pytest.mark.timeout(1_800)
def test_storage_is_bounded_by_maintenance(tmp_path: Path) -> None:
    load = Load(history_days=5, vacuum_hours=24, keep="1d:all 3d:12h 10d:1d")
    days = {day.day: day for day in simulated(tmp_path / "kept", 70, 10, load)}
    # after the longest limit nothing grows any more
    early, late = days[_LOG_DAYS + 20], days[70]
    assert late.megabytes < 1.1 * early.megabytes
    assert late.files < 1.1 * early.files
    for name, rows in late.rows.items():
        assert 0 < rows < 1.1 * early.rows[name], name
    (alone,) = simulated(tmp_path / "alone", 20, 20, Load(maintain_days=0))
    assert alone.megabytes > late.megabytes / 2
    assert alone.files > late.files / 2
