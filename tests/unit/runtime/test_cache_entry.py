"""Entries of the cache that are made once."""

import threading
from pathlib import Path

import pytest

from pipelines.runtime.cache.entry import make_once
from pipelines.runtime.cache.folder import remove


def test_an_entry_is_made_once_by_one_of_several_threads(tmp_path: Path) -> None:
    entry, begun, release = tmp_path / "tools" / "one", threading.Event(), threading.Event()
    makers: list[str] = []

    def make(folder: Path) -> None:
        makers.append(threading.current_thread().name)
        begun.set()
        release.wait()
        (folder / "file").write_text("complete")

    threads = [threading.Thread(target=make_once, args=(entry, make)) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    assert not entry.exists()
    assert not remove(entry)
    release.set()
    for thread in threads:
        thread.join()
    assert len(makers) == 1
    assert (entry / "file").read_text() == "complete"


def test_an_entry_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    entry = tmp_path / "tools" / "one"

    def fail(folder: Path) -> None:
        (folder / "part").touch()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        make_once(entry, fail)
    assert [each.name for each in entry.parent.iterdir() if not each.name.endswith(".lock")] == []
    assert make_once(entry, lambda folder: (folder / "file").touch()).is_dir()
