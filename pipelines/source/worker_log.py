"""Warnings of Spark's Python workers, such as a wait for brokers, on their way to the standard error of the job.

A worker shares the standard error of Spark's JVM, whose output the job drops (`pipelines.job.spark.gateway`), except for lines
that begin with MARK. In the logs of a cluster's executors the mark says where a line comes from.
"""

import logging

MARK = "grouplake: "


def mark_warnings() -> None:
    """Writes the warnings of the core to standard error with MARK, in a process that Spark has started."""
    logger = logging.getLogger("coordinator_core")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(f"{MARK}%(message)s"))
        logger.addHandler(handler)
