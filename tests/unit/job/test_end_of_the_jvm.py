"""A signal to the whole process group ends the JVM too; its clients in this process log no errors about that."""

import logging
import socket
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.accumulators import _start_update_server

from pipelines.job.spark.streaming_query import expect_the_end_of_the_jvm

TOKEN = "token"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


def greeted(server: Any) -> socket.socket:
    connection = socket.create_connection(server.server_address)
    connection.sendall(TOKEN.encode() + struct.pack("!i", 0))
    assert connection.recv(1) == b"\x01"
    return connection


@pytest.mark.parametrize("expected", [True, False])
def test_the_server_of_accumulators_is_hung_up_on(
    expected: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server = _start_update_server(TOKEN, False)
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(_accumulatorServer=server))
    jvm = greeted(server)
    if expected:
        expect_the_end_of_the_jvm()
    jvm.close()
    # the server handles one after the other: the first is done once the second is greeted
    greeted(server).close()
    server.shutdown()
    assert ("Traceback" in capfd.readouterr().err) is not expected


def test_without_a_session_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    expect_the_end_of_the_jvm()
    assert not logging.getLogger().isEnabledFor(logging.ERROR)
