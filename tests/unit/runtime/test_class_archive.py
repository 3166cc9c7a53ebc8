"""Archives of loaded classes: one per class path, found only when complete; incomplete ones are removed."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.runtime.cache.class_archive import ClassArchive, Recording
from pipelines.runtime.cache.folder import entries, lock_path

_JVM = "import sys; print('started', flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def jar(folder: Path, name: str, content: str = "classes") -> Path:
    path = folder / name
    path.write_text(content)
    return path


def archive_of(jars: list[Path], options: str = "", program: str = "spark") -> ClassArchive:
    return ClassArchive.of(program, jars, options)


def recording(archive: ClassArchive) -> tuple[Path, Recording]:
    """The archive that a JVM must write, and the recording."""
    use = archive.use(records=True)
    found = re.search(r"-XX:ArchiveClassesAtExit=(\S+)", " ".join(use.options))
    assert found is not None
    assert use.recording is not None
    return Path(found[1]), use.recording


def recorded(archive: ClassArchive) -> None:
    file, made = recording(archive)
    file.write_text("classes")
    assert made.keep()


def test_another_jar_version_or_option_has_an_archive_of_its_own(tmp_path: Path) -> None:
    one = jar(tmp_path, "a-1.jar")
    first = archive_of([one], "-Xint")
    assert archive_of([one], "-Xint") == first
    assert archive_of([one, jar(tmp_path, "b-1.jar")], "-Xint") != first
    assert archive_of([one], "") != first
    one.write_text("newer classes")
    assert archive_of([one], "-Xint") != first


def test_an_archive_is_found_once_it_is_kept(tmp_path: Path) -> None:
    archive = archive_of([jar(tmp_path, "a.jar")])
    file, made = recording(archive)
    assert not made.keep()
    file, made = recording(archive)
    file.write_text("classes")
    assert not archive.path.exists()
    assert made.keep()
    assert archive.use(records=True).options[-1] == f"-XX:SharedArchiveFile={archive.path}"
    assert not file.exists()


def test_a_session_that_is_not_to_record_maps_an_archive_or_has_none(tmp_path: Path) -> None:
    archive = archive_of([jar(tmp_path, "a.jar")])
    assert archive.use(records=False).options == ()
    recorded(archive)
    assert archive.use(records=False).options[-1] == f"-XX:SharedArchiveFile={archive.path}"


def test_an_archive_that_lost_its_end_is_recorded_again(tmp_path: Path) -> None:
    archive = archive_of([jar(tmp_path, "a.jar")])
    recorded(archive)
    os.truncate(archive.path, 3)
    assert archive.use(records=False).options == ()
    recorded(archive)
    assert archive.path.read_text() == "classes"


def test_one_session_records_at_a_time(tmp_path: Path) -> None:
    archive = archive_of([jar(tmp_path, "a.jar")])
    file, made = recording(archive)
    assert archive.use(records=True).options == ()
    made.discard()
    assert recording(archive)[0] == file


def test_the_archives_of_one_program_that_were_used_last_are_kept(tmp_path: Path) -> None:
    other = archive_of([jar(tmp_path, "kafka.jar")], program="kafka-4.1.1")
    archives = [archive_of([jar(tmp_path, f"{number}.jar")]) for number in range(5)]
    now = round(time.time())
    for age, archive in enumerate((*reversed(archives), other)):
        recorded(archive)
        os.utime(lock_path(archive.path), (now - age, now - age))
    last = archive_of([jar(tmp_path, "last.jar")])
    recorded(last)
    assert [archive.path.exists() for archive in (*archives, last)] == [False, False, False, True, True, True]
    assert other.path.exists()


def test_an_archive_without_use_for_a_month_is_removed_when_one_of_any_program_is_made(tmp_path: Path) -> None:
    old, new = (archive_of([jar(tmp_path, f"{name}.jar")], program=name) for name in ("kafka-3.9.1", "spark"))
    recorded(old)
    os.utime(lock_path(old.path), (1_000_000, 1_000_000))
    recorded(new)
    assert [archive.path.exists() for archive in (old, new)] == [False, True]


@pytest.mark.parametrize(("exit_code", "kept"), [(0, True), (143, True), (-9, False)])
def test_what_a_jvm_wrote_that_was_killed_is_discarded(tmp_path: Path, exit_code: int, kept: bool) -> None:
    archive = archive_of([jar(tmp_path, "a.jar")])
    file, made = recording(archive)
    file.write_text("classes")
    assert made.end(exit_code) == archive.is_whole() == kept
    assert not file.exists()


def test_the_recording_of_a_killed_session_is_removed_at_the_next_start_but_not_while_its_jvm_writes(tmp_path: Path) -> None:
    archive, other = (archive_of([jar(tmp_path, name)]) for name in ("a.jar", "b.jar"))
    file, made = recording(archive)
    file.write_bytes(bytes(1000))
    # the JVM has inherited the lock, and runs on after the process that started it has ended
    jvm = subprocess.Popen(
        [sys.executable, "-c", _JVM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(made.descriptor,)
    )
    try:
        assert jvm.stdout is not None
        jvm.stdout.readline()
        os.close(made.descriptor)
        other.use(records=False)
        assert file.exists()
        assert archive.use(records=True).options == ()
    finally:
        jvm.kill()
        jvm.communicate()
    other.use(records=False)
    assert list(entries()) == []


def test_recordings_of_earlier_releases_are_removed(tmp_path: Path, cache: Path) -> None:
    left = cache / "classes" / "0123abcd.4711.recording"
    left.parent.mkdir(parents=True)
    left.write_text("")
    archive_of([jar(tmp_path, "a.jar")]).use(records=True)
    assert not left.exists()
