"""Output on standard error and archives of classes of a job's first runs, for every way in which they end."""

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import genuine
import pytest
from first_use import without_recording
from following import Job

from pipelines.runtime.cache.class_archive import ClassArchive
from pipelines.runtime.cache.folder import cache_root, lock, lock_path, unfinished

pytestmark = pytest.mark.spark

BATCH = r"batch 0: 190 records read, 102 kept, [\d.]+ s"
SAMPLE = r"batch 1: sample of end offsets, [\d.]+ s"
RECORDING = r"recording the classes that Spark has loaded, for faster starts \(some seconds, once\)"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the jars of the test run's cache, but without archives; kernels are in $NUMBA_CACHE_DIR."""
    made = tmp_path / "cache"
    made.mkdir()
    (made / "jars").symlink_to(cache_root() / "jars")
    monkeypatch.setenv("GROUPLAKE_CACHE", str(made))
    return made


@pytest.fixture
def source(tmp_path: Path) -> str:
    return f"segments:{genuine.segments_dir('4.1.1', tmp_path / 'log')}"


def run(source: str, tables: Path, *more: str, **environment: str) -> tuple[int, list[str], str]:
    """Exit code, lines on standard error, standard output."""
    command = [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())"]
    command += ["run", "--source", source, "--tables", str(tables), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    return done.returncode, done.stderr.splitlines(), done.stdout


def expect(lines: list[str], *patterns: str) -> None:
    """Assert that the lines match their patterns one by one, and that there are no others but those of a new or slow machine."""
    lines = [
        line for line in lines if line in without_recording(lines) or (RECORDING in patterns and re.fullmatch(RECORDING, line))
    ]
    assert len(lines) == len(patterns), lines
    assert [line for line, pattern in zip(lines, patterns, strict=True) if not re.fullmatch(pattern, line)] == []


def archives(cache: Path) -> list[Path]:
    return sorted(each for each in (cache / "classes").iterdir() if each.suffix != ".lock")


@pytest.mark.slow
def test_standard_error_has_our_lines_only_without_an_archive_and_with_one(source: str, cache: Path, tmp_path: Path) -> None:
    code, lines, output = run(source, tmp_path / "first")
    assert (code, output) == (0, "")
    expect(lines, "starting Spark", BATCH, RECORDING, SAMPLE)
    assert len(archives(cache)) == 1

    code, lines, output = run(source, tmp_path / "second")
    assert (code, output) == (0, "")
    expect(lines, "starting Spark", BATCH, SAMPLE)

    code, lines, output = run(source, tmp_path / "second")
    assert (code, output) == (0, "")
    expect(lines, f"up to date: {source} has no records after batch 1")


@pytest.mark.slow
def test_standard_error_has_our_lines_only_with_a_damaged_archive(source: str, cache: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "first")
    (archive,) = archives(cache)
    archive.chmod(0o644)
    with archive.open("r+b") as file:
        file.write(bytes(4096))
    code, lines, output = run(source, tmp_path / "third")
    assert (code, output) == (0, "")
    expect(lines, "starting Spark", BATCH, SAMPLE)

    os.truncate(archive, archive.stat().st_size // 2)
    code, lines, output = run(source, tmp_path / "fourth")
    assert (code, output) == (0, "")
    expect(lines, "starting Spark", BATCH, RECORDING, SAMPLE)


@pytest.mark.long
def test_a_jvm_that_does_not_start_is_one_line_with_its_reason(source: str, tmp_path: Path) -> None:
    conf = tmp_path / "mine.toml"
    conf.write_text('[spark]\njava_options = "-XX:+UseG1GC -XX:+UseSerialGC"')
    code, lines, _ = run(source, tmp_path / "tables", "--conf", str(conf))
    assert code == 1
    expect(
        lines,
        "starting Spark",
        r"grouplake: Spark's JVM exited during its start: .*collector.*; check \[spark\] java_options.*",
    )


@pytest.mark.slow
def test_a_job_that_was_killed_leaves_nothing_and_one_that_was_stopped_an_archive(
    source: str, cache: Path, tmp_path: Path
) -> None:
    with Job(source, tmp_path / "killed") as job:
        job.wait_until_logged("ready: following")
        (made,) = (each.name.removeprefix(".").removesuffix(".lock") for each in (cache / "classes").iterdir())
        archive = ClassArchive(cache / "classes" / made)
        # the JVM detects that its driver has ended, and writes an archive that is discarded
        job.signal(9)
        free = lock(archive.path, fcntl.LOCK_EX)
        assert free is not None
        os.close(free)
    assert archives(cache) == [unfinished(archive.path)]

    with Job(source, tmp_path / "stopped") as job:
        job.wait_until_logged("ready: following")
        assert not unfinished(archive.path).exists()
        job.signal(15)
        assert job.ended() == 0
    expect(job.lines, "starting Spark", BATCH, f"ready: following {source}", "stopping", RECORDING)
    assert archives(cache) == [archive.path]
    assert lock_path(archive.path).exists()
