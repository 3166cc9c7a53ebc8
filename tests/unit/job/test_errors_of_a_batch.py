"""An error of a batch reaches Spark as one line: Spark searches it with a pattern that overflows on long texts."""

import traceback

import pytest
from pyspark.errors import PySparkException

from pipelines.job.spark.streaming_query import with_short_errors
from pipelines.runtime.errors import TablesError

TRACE = "".join(f"  at org.apache.spark.Stage{number}.run(Stage.scala:{number})\n" for number in range(500))


def raising(error: Exception) -> None:
    def apply(_changed: object, _batch_id: int) -> None:
        raise error

    with_short_errors(apply)(None, 0)


def test_the_message_of_a_worker_without_the_stacks_around_it() -> None:
    error = PySparkException(
        "Job aborted due to stage failure\n"
        f"{TRACE}coordinator_core.log.errors.LogUnreachable: no broker answers at h:9092 (waited for 120 s)\n{TRACE}"
    )
    with pytest.raises(TablesError, match=r"^no broker answers at h:9092 \(waited for 120 s\)$") as raised:
        raising(error)
    assert "Stage" not in "".join(traceback.format_exception(raised.value))


def test_errors_of_our_own_pass_as_they_are() -> None:
    error = TablesError("the tables end before offset 7")
    with pytest.raises(TablesError) as raised:
        raising(error)
    assert raised.value is error


class Panic(BaseException):
    """Like pyo3's PanicException, which is no Exception."""


def test_a_panic_of_a_library_ends_the_query_with_its_reason() -> None:
    """It would end py4j's thread without an answer."""

    def apply(_changed: object, _batch_id: int) -> None:
        raise Panic("cgroup limits")

    with pytest.raises(TablesError, match=r"the batch failed: Panic: cgroup limits"):
        with_short_errors(apply)(None, 0)
