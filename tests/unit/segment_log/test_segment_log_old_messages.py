"""Valid messages of magic 0 and 1, which this log does not keep: opening rejects the folder and changes no byte."""

from pathlib import Path

import pytest
from appended_logs import NOW_MS, commit, folder_of, opened
from segment_builder import LogBuilder

from coordinator_core.log.compression import Compression
from coordinator_core.segment_log.errors import OldMessages
from coordinator_core.segment_log.settings import SegmentLogSettings

SETTINGS = SegmentLogSettings()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_a_folder_with_old_messages_is_refused_and_not_changed(tmp_path: Path, magic: int, compression: Compression) -> None:
    builder = LogBuilder(tmp_path)
    builder.append_messages(0, [(b"k", b"v"), (b"k", None)], magic=magic, compression=compression, timestamp=NOW_MS)
    path = next(folder_of(tmp_path).glob("*.log"))
    written = path.read_bytes()
    with pytest.raises(OldMessages, match=r"at byte 0, offset 0: messages in a format from before Kafka 0.11, .*"):
        opened(tmp_path, SETTINGS)
    assert path.read_bytes() == written


def test_old_messages_after_batches_are_found_too(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    log.partition(0).append([commit(b"key", b"value")], NOW_MS)
    log.close()
    other = LogBuilder(tmp_path / "other")
    other.skip(0, 1)
    other.append_messages(0, [(b"k", b"v")], magic=1, compression=Compression.NONE, timestamp=NOW_MS)
    path = next(folder_of(tmp_path).glob("*.log"))
    batch = path.read_bytes()
    path.write_bytes(batch + next(folder_of(tmp_path / "other").glob("*.log")).read_bytes())
    with pytest.raises(OldMessages, match=f"at byte {len(batch)}, offset 1"):
        opened(tmp_path, SETTINGS)


def test_zeros_that_a_file_system_left_are_not_an_old_message(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    log.partition(0).append([commit(b"key", b"value")], NOW_MS)
    log.close()
    path = next(folder_of(tmp_path).glob("*.log"))
    batch = path.read_bytes()
    path.write_bytes(batch + bytes(4096))
    log = opened(tmp_path, SETTINGS)
    assert [cut.size for cut in log.cut_tails()] == [4096]
    assert log.partition(0).end_offset == 1
    log.close()
    assert path.read_bytes() == batch
