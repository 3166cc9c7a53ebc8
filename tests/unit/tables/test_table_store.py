"""A store reads its tables at their newest version, for any writer and any remaining part of the log."""

from pathlib import Path
from unittest import mock

import pytest
from deltalake import DeltaTable

from pipelines.tables.sorted_files.sorted_files import replace_files
from pipelines.tables.store import TableStore


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    made = TableStore(str(tmp_path))
    made.create()
    assert made.table("offsets").version() == 0
    return made


def commit_elsewhere(store: TableStore, times: int) -> DeltaTable:
    other = DeltaTable(store.path("offsets"))
    for _ in range(times):
        replace_files(other, [], [], "")
    return other


def test_versions_of_other_writers_are_seen(store: TableStore) -> None:
    commit_elsewhere(store, 2)
    assert store.table("offsets").version() == 2


def test_versions_are_seen_when_the_entries_between_are_gone(store: TableStore) -> None:
    commit_elsewhere(store, 3).create_checkpoint()
    for version in range(3):
        Path(store.path("offsets"), "_delta_log", f"{version:020}.json").unlink()
    assert store.table("offsets").version() == 3


def test_versions_are_seen_when_only_a_checkpoint_is_left(store: TableStore) -> None:
    commit_elsewhere(store, 3).create_checkpoint()
    for entry in Path(store.path("offsets"), "_delta_log").glob("*.json"):
        entry.unlink()
    assert store.table("offsets").version() == 3


def test_a_log_is_not_listed_while_it_is_unchanged(store: TableStore) -> None:
    with mock.patch.object(DeltaTable, "update_incremental") as update:
        store.table("offsets")
        assert not update.called
        Path(store.path("offsets"), "_delta_log", f"{1:020}.json").touch()
        store.table("offsets")
        assert update.called
