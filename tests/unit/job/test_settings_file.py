"""Settings that reach a JVM in a file. A test with a JVM checks that they are not arguments (`tests/e2e/test_signals.py`)."""

import os
import shlex
import stat
from pathlib import Path

import pytest
from pyspark import SparkContext

from pipelines.job.spark.settings_file import settings_file
from pipelines.job.spark.spark_kafka import jvm_settings

SETTINGS = {"spark.a": "x = y: \\ü\n", "spark.on": True, "spark.n": 5, "fs.key": "z"}


@pytest.fixture(autouse=True)
def no_jvm_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)


def test_settings_are_in_a_file_while_the_jvm_starts() -> None:
    with settings_file(SETTINGS) as hidden:
        assert hidden == SETTINGS.keys()
        *_, option, name, shell = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
        assert (option, shell) == ("--properties-file", "pyspark-shell")
        path = Path(name)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        lines = ["spark.a=x\\ \\=\\ y\\:\\ \\\\ü\\n", "spark.on=true", "spark.n=5"]
        assert path.read_text(encoding="utf-8").splitlines() == lines
    assert not path.exists()
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_arguments_of_the_operator_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
    with settings_file(SETTINGS):
        assert os.environ["PYSPARK_SUBMIT_ARGS"].endswith(" --verbose pyspark-shell")
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--verbose pyspark-shell"


@pytest.mark.parametrize(
    ("name", "value"), [("PYSPARK_SUBMIT_ARGS", "--properties-file mine.conf pyspark-shell"), ("PYSPARK_GATEWAY_PORT", "7")]
)
def test_where_a_file_would_not_be_read(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with settings_file(SETTINGS) as hidden:
        assert hidden == frozenset()
        assert os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell").endswith("pyspark-shell")


def test_passwords_as_java_reads_them() -> None:
    kafka = {"sasl_mechanism": "PLAIN", "sasl_username": "ü", "sasl_password": 'a"b\\c'}
    assert jvm_settings(kafka, {})["sasl.jaas.config"].endswith(' username="ü" password="a\\"b\\\\c";')
