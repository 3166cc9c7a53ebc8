"""The output of Spark's JVM: marked lines of Python workers reach standard error, everything else is kept for errors."""

import logging
import os

import pytest

from pipelines.job.spark.gateway import _Output
from pipelines.source.worker_log import mark_warnings


def test_marked_lines_are_printed_and_the_others_kept(capsys: pytest.CaptureFixture[str]) -> None:
    output = _Output()
    os.write(output.end, b"WARNING: Using incubator modules\ngrouplake: waiting for the brokers, up to 120 s\n\nhs_err\n")
    output.close()
    assert output.text() == "WARNING: Using incubator modules; hs_err"
    assert capsys.readouterr().err == "waiting for the brokers, up to 120 s\n"


def test_workers_mark_their_warnings_once(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("coordinator_core")
    handlers = list(logger.handlers)
    logger.handlers.clear()
    try:
        mark_warnings()
        mark_warnings()
        logging.getLogger("coordinator_core.sources.kafka_topic").warning("no broker answers")
    finally:
        logger.handlers[:] = handlers
    assert capsys.readouterr().err == "grouplake: no broker answers\n"
