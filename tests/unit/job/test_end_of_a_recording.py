"""A session that recorded its classes leaves no JVM behind, and the next session of the process starts one of its own."""

import subprocess
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from pyspark import SparkContext

from pipelines.job.spark.executor_log import ExecutorLog
from pipelines.job.spark.session import Session


@pytest.mark.parametrize("code", [0, -9])
def test_the_jvm_is_forgotten(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Mock(spec=subprocess.Popen, stdin=Mock())
    process.wait.return_value = code
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    monkeypatch.setattr(SparkContext, "_jvm", object())
    recording = Mock()
    Session(Mock(), ExecutorLog(), is_fresh=True, recording=recording).finish(lambda _: None)
    assert (SparkContext._gateway, SparkContext._jvm) == (None, None)
    # which keeps or discards the archive: unit/runtime/test_class_archive.py
    recording.end.assert_called_once_with(code)
