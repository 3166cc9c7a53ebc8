"""The samples of a run: brokers and replicas follow each sample of end offsets."""

import threading
from datetime import UTC, datetime
from typing import Any, cast

from coordinator_core.log.errors import LogUnreachable
from pipelines.lag.schedule import SampleSchedule
from pipelines.tables.store import Batch

BATCH = Batch(3, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), 1, "4", 1, 0, 0, {}, {}, {})


class Sampling:
    """Notes the calls; `result` is what `sample` returns or raises."""

    def __init__(self, result: Batch | Exception | None, calls: list[str], name: str) -> None:
        self._result = result
        self._calls = calls
        self._name = name

    def sample(self, _writer: object) -> Batch | None:
        self._calls.append(self._name)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def calls_of(result: Batch | Exception | None) -> tuple[list[str], list[str]]:
    """Calls and lines of progress of a run with one sample."""
    calls: list[str] = []
    lines: list[str] = []
    lag, cluster = (cast(Any, Sampling(each, calls, name)) for each, name in ((result, "lag"), (None, "cluster")))
    schedule = SampleSchedule(lag, None, threading.Lock(), lambda: cast(Any, None), lines.append, cluster)
    schedule.query_ended(is_done=True)
    return calls, lines


def test_the_cluster_is_asked_after_a_sample() -> None:
    assert calls_of(BATCH) == (["lag", "cluster"], ["batch 3: sample of end offsets, 0.0 s"])


def test_the_cluster_is_not_asked_without_groups_or_brokers() -> None:
    assert calls_of(None) == (["lag"], [])
    calls, lines = calls_of(LogUnreachable("no broker"))
    assert (calls, len(lines)) == (["lag"], 1)
