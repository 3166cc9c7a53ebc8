"""The Spark home in the cache: one for environments with the same Spark, and none where the installed one was changed."""

import errno
import os
from pathlib import Path

import pytest

from pipelines.runtime.cache import spark_home
from pipelines.runtime.cache.folder import entries
from pipelines.runtime.cache.jars import spark_jars
from pipelines.runtime.cache.spark_home import shared_home


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, core: bytes = b"core of 4.2.0") -> Path:
    """An environment's Spark, which is found from now on."""
    for name, content in (
        ("bin/spark-submit", b"#!/bin/sh"),
        ("jars/spark-core.jar", core),
        ("jars/slf4j-api.jar", b"logging"),
        ("jars/connect-repl/spark-connect.jar", b"another client"),
        ("python/lib/pyspark.zip", b"packages"),
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    monkeypatch.setattr(spark_home, "spark_folder", lambda: folder)
    return folder


def test_environments_with_the_same_spark_share_a_home_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = installed(tmp_path / "first", monkeypatch)
    home = shared_home()
    assert home is not None
    assert sorted(str(each.relative_to(home)) for each in home.rglob("*") if each.is_file()) == [
        "bin/spark-submit",
        "jars/slf4j-api.jar",
        "jars/spark-core.jar",
    ]
    assert (home / "jars/spark-core.jar").samefile(first / "jars/spark-core.jar")
    assert [jar.name for jar in spark_jars(home)] == ["slf4j-api.jar", "spark-core.jar"]

    second = installed(tmp_path / "second", monkeypatch)
    os.utime(second / "jars/spark-core.jar", (0, 0))
    assert shared_home() == home
    assert [entry.kind for entry in entries()] == ["spark"]


@pytest.mark.parametrize("core", [b"core of 4.2.1", b"core"])
def test_another_spark_has_a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: bytes) -> None:
    installed(tmp_path / "first", monkeypatch)
    home = shared_home()
    installed(tmp_path / "second", monkeypatch, core)
    assert shared_home() not in (home, None)


def test_a_jar_that_was_added_is_in_a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = installed(tmp_path / "first", monkeypatch)
    home = shared_home()
    elsewhere = tmp_path / "hadoop-aws.jar"
    elsewhere.write_bytes(b"store")
    (folder / "jars" / "hadoop-aws.jar").symlink_to(elsewhere)
    other = shared_home()
    assert other not in (home, None)
    assert other is not None
    assert (other / "jars" / "hadoop-aws.jar").samefile(elsewhere)


@pytest.mark.parametrize("name", ["conf", "spark-distribution"])
def test_a_spark_with_settings_or_another_distribution_is_used_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (installed(tmp_path / "first", monkeypatch) / name).mkdir()
    assert shared_home() is None


def test_the_spark_of_the_environment_variable_is_used_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(installed(tmp_path / "first", monkeypatch)))
    assert shared_home() is None


def test_a_home_on_another_file_system_has_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_from: Path, to: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link", str(to))

    folder = installed(tmp_path / "first", monkeypatch)
    monkeypatch.setattr(os, "link", refuse)
    home = shared_home()
    assert home is not None
    copied, original = (each / "jars/spark-core.jar" for each in (home, folder))
    assert copied.read_bytes() == original.read_bytes()
    assert copied.stat().st_mtime_ns == original.stat().st_mtime_ns
    assert not copied.samefile(original)


def test_the_installed_spark_is_used_where_the_cache_cannot_have_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    def refuse(_from: Path, to: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(to))

    installed(tmp_path / "first", monkeypatch)
    monkeypatch.setattr(os, "link", refuse)
    assert shared_home() is None
    assert list(entries("spark")) == []
    assert cache.exists()
