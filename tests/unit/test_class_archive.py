"""Archives of loaded classes: one per class path, found only when complete."""

import os
import re
from pathlib import Path

import pytest

from pipelines.class_archive import ClassArchive


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def jar(folder: Path, name: str, content: str = "classes") -> Path:
    path = folder / name
    path.write_text(content)
    return path


def recorded_by(archive: ClassArchive) -> Path:
    found = re.search(r"-XX:ArchiveClassesAtExit=(\S+)", archive.record_options)
    assert found is not None
    return Path(found[1])


def test_another_jar_version_or_option_has_an_archive_of_its_own(tmp_path: Path) -> None:
    one = jar(tmp_path, "a-1.jar")
    first = ClassArchive.of([one], "-Xint")
    assert ClassArchive.of([one], "-Xint") == first
    assert ClassArchive.of([one, jar(tmp_path, "b-1.jar")], "-Xint") != first
    assert ClassArchive.of([one], "") != first
    one.write_text("newer classes")
    assert ClassArchive.of([one], "-Xint") != first


def test_an_archive_is_found_once_it_is_kept(tmp_path: Path) -> None:
    archive = ClassArchive.of([jar(tmp_path, "a.jar")], "")
    recording = recorded_by(archive)
    assert not archive.keep()
    recording.write_text("classes")
    assert not archive.exists
    assert archive.keep()
    assert archive.exists
    assert f"-XX:SharedArchiveFile={archive.path}" in archive.use_options
    assert not recording.exists()


def test_old_archives_and_abandoned_recordings_go(tmp_path: Path, cache: Path) -> None:
    archives = [ClassArchive.of([jar(tmp_path, f"{number}.jar")], "") for number in range(5)]
    for age, archive in enumerate(reversed(archives)):
        recorded_by(archive).write_text("classes")
        assert archive.keep()
        os.utime(archive.path, (1_000_000 - age, 1_000_000 - age))
    abandoned = cache / "classes" / "left.1.recording"
    abandoned.write_text("")
    os.utime(abandoned, (0, 0))
    last = ClassArchive.of([jar(tmp_path, "last.jar")], "")
    recorded_by(last).write_text("classes")
    assert last.keep()
    assert [archive.exists for archive in (*archives, last)] == [False, False, False, True, True, True]
    assert not abandoned.exists()
