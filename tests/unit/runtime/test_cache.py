"""The cache: entries in use are kept, entries without a process can be removed, also after a kill."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.runtime.cache.folder import UNUSED_DAYS, entries, hold, lock_path, remove, remove_unused, unfinished

_HOLD = """
import sys
from pathlib import Path
from pipelines.runtime.cache.folder import hold
hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path))
    return tmp_path


def entry(cache: Path, kind: str, name: str, size: int = 10) -> Path:
    path = cache / kind / name
    path.mkdir(parents=True)
    (path / "content").write_bytes(bytes(size))
    return path


@contextmanager
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that uses the entry."""
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_entries_have_kind_name_size_and_time(cache: Path) -> None:
    used = entry(cache, "jars", "kafka-4.1.1", 100)
    entry(cache, "builds", "sarama", 30)
    entry(cache, "ivy", "org", 7)
    unfinished(cache / "classes" / "key.jsa").parent.mkdir()
    unfinished(cache / "classes" / "key.jsa").write_bytes(bytes(50))
    hold(used)
    os.utime(used, (0, 0))
    found = {(each.kind, each.name): each for each in entries()}
    assert {key: each.bytes for key, each in found.items()} == {
        ("builds", "sarama"): 30,
        ("classes", "key.jsa"): 50,
        ("ivy", "ivy"): 7,
        ("jars", "kafka-4.1.1"): 100,
    }
    assert found["jars", "kafka-4.1.1"].last_used == pytest.approx(time.time(), abs=60)


def test_what_a_process_uses_is_not_removed(cache: Path) -> None:
    path = entry(cache, "jars", "kafka-4.1.1")
    with holder(path):
        assert not remove(path)
        assert (path / "content").exists()
    assert remove(path)
    assert list((cache / "jars").iterdir()) == []


def test_a_killed_process_uses_nothing(cache: Path) -> None:
    path = entry(cache, "jars", "kafka-4.1.1")
    with holder(path) as process:
        process.kill()
        process.wait()
        assert remove(path)


def test_an_entry_of_this_process_is_not_removed(cache: Path) -> None:
    path = entry(cache, "kernels", "key")
    assert hold(path) is not None
    assert not remove(path)


def test_a_lock_survives_the_removal_of_its_entry(cache: Path) -> None:
    path = entry(cache, "jars", "again")
    assert remove(path)
    with holder(path):
        assert lock_path(path).exists()
        assert not remove(path)


def test_entries_that_no_process_used_for_long_are_removed(cache: Path) -> None:
    old, new = entry(cache, "jars", "old"), entry(cache, "jars", "new")
    for path in (old, new):
        with holder(path):
            pass
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86_400
    os.utime(lock_path(old), (long_ago, long_ago))
    remove_unused("jars")
    assert [each.name for each in entries()] == ["new"]


def test_a_folder_that_cannot_be_written_has_no_locks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert hold(tmp_path / "file" / "jars" / "name") is None


def test_the_command_lists_and_clears(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used, unused = entry(cache, "jars", "used", 2_000_000), entry(cache, "kernels", "unused")
    entry(cache, "jars", "other", 1_000_000)
    assert main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["kind", "name", "mb", "last_used"]
    assert [line.split()[:3] for line in lines[2:5]] == [
        ["jars", "other", "1.0"],
        ["jars", "used", "2.0"],
        ["kernels", "unused", "0.0"],
    ]
    assert lines[-1] == f"3.0 MB in {cache}"
    with holder(used):
        assert main(["cache", "--clear", "jars"]) == 0
    assert capsys.readouterr().out.splitlines() == ["removed: jars/other, 1.0 MB", "in use, kept: jars/used, 2.0 MB"]
    assert unused.exists()
    assert main(["cache", "--clear"]) == 0
    assert list(entries()) == []


def test_an_unknown_kind_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--clear", "jar"]) == 2
    assert "no such kind: use checkpoints, classes, ivy, jars, kernels, spark, storage" in capsys.readouterr().err


def test_an_empty_cache_is_listed_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    assert "0.0 MB in" in capsys.readouterr().out
