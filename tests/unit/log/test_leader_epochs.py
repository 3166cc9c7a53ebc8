"""`leader-epoch-checkpoint`: as brokers write it, and other content in its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.log.leader_epochs import (
    LEADER_EPOCHS,
    EpochEntry,
    first_begun_after,
    read_leader_epochs,
    with_new_epoch,
    write_leader_epochs,
)

ENTRIES = [EpochEntry(0, 0), EpochEntry(3, 17), EpochEntry(4, 17)]


def read(folder: Path, data: bytes) -> list[EpochEntry]:
    (folder / LEADER_EPOCHS).write_bytes(data)
    return read_leader_epochs(folder)


def test_as_brokers_write_it(tmp_path: Path) -> None:
    assert read_leader_epochs(tmp_path) == []
    write_leader_epochs(tmp_path, ENTRIES)
    assert (tmp_path / LEADER_EPOCHS).read_text() == "0\n3\n0 0\n3 17\n4 17\n"
    assert read_leader_epochs(tmp_path) == ENTRIES
    assert [path.name for path in tmp_path.iterdir()] == [LEADER_EPOCHS]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", []),
        ("1\n1\n0 0\n", []),
        ("0\n1\n", []),
        ("0\n3\n0 0\n1\n2 x\n-1 4\n3 5 6\n4 7\n", [EpochEntry(0, 0), EpochEntry(4, 7)]),
        ("0\n2\n² 3\n٣ 4\n", []),
        (f"0\n1\n{'9' * 5000} 1\n", []),
        ("0\n2\n2147483646 3\n2147483647 4\n", [EpochEntry(2147483646, 3)]),
    ],
)
def test_what_cannot_be_understood_is_left_out(tmp_path: Path, text: str, entries: list[EpochEntry]) -> None:
    assert read(tmp_path, text.encode()) == entries


@given(st.binary(max_size=60) | st.text("0123456789 \n-x").map(lambda text: b"0\n9\n" + text.encode()))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    entries = read(tmp_path_factory.getbasetemp(), data)
    assert first_begun_after(-1, entries) == min((entry.start_offset for entry in entries), default=None)


def test_where_the_next_epoch_began() -> None:
    assert [first_begun_after(epoch, ENTRIES) for epoch in (-1, 0, 1, 3, 4)] == [0, 17, 17, 17, None]


def test_a_new_epoch_replaces_those_without_records() -> None:
    assert with_new_epoch(ENTRIES, 5, 17) == [EpochEntry(0, 0), EpochEntry(5, 17)]
    assert with_new_epoch(ENTRIES, 5, 20) == [*ENTRIES, EpochEntry(5, 20)]
