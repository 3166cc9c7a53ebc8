"""Command lines of private brokers and Kafka's tools."""

from pathlib import Path

import pytest

from pipelines.examples.private.kafka.process import class_archive, java_command
from pipelines.runtime.cache.folder import unfinished


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "jars" / "kafka-4.1.1"
    folder.mkdir(parents=True)
    (folder / "kafka.jar").write_text("classes")
    return folder


def test_a_jvm_maps_the_archive_of_its_jars_once_there_is_one(jars: Path) -> None:
    before = java_command(jars, "kafka.Kafka", ["server.properties"], ["-Dname=value"])
    assert before[-5:] == ["-Dname=value", "-cp", f"{jars}/*", "kafka.Kafka", "server.properties"]

    archive = class_archive(jars)
    recording = archive.use(records=True).recording
    assert recording is not None
    unfinished(archive.path).write_text("classes")
    assert java_command(jars, "kafka.Kafka", ["server.properties"], ["-Dname=value"]) == before
    assert recording.end(143)

    after = java_command(jars, "kafka.tools.StorageTool", [])
    assert f"-XX:SharedArchiveFile={archive.path}" in after
    assert archive.path.name.startswith("kafka-4.1.1-")


def test_every_release_has_an_archive_of_its_own(jars: Path) -> None:
    other = jars.with_name("kafka-4.3.0")
    jars.rename(other)
    of_other = class_archive(other)
    other.rename(jars)
    assert class_archive(jars).path != of_other.path
