"""Of an outage a job reports its first line and its end, whichever of its parts notice it."""

import pytest

from pipelines.job.outage_lines import OutageLines

REFUSED = "no broker answers at h:1 (h:1: connection refused)"


class Job:
    """Lines that parts of a job report at given times, and those that are passed on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.passed: list[str] = []
        self._lines = OutageLines(self.passed.append, lambda: self.now)

    def reports(self, at: float, *lines: str) -> None:
        self.now = at
        for line in lines:
            self._lines(line)


@pytest.fixture
def job() -> Job:
    return Job()


def test_every_part_notices_the_outage(job: Job) -> None:
    job.reports(
        2,
        f"waiting for the brokers: {REFUSED}",
        f"end offsets cannot be sampled, so lag is not updated: {REFUSED}",
        f"settings of topics orders cannot be read ({REFUSED}), so their retention and compaction are unknown: the user needs …",
        f"transactions cannot be read: {REFUSED}",
        f"waiting for the brokers, up to 5 s: {REFUSED}",
        "batch 3: maintenance, 0.1 s",
    )
    job.reports(
        33, "transactions are read again", "the brokers answer again, after 31 s", "end offsets are sampled again", "batch 4: …"
    )
    assert job.passed == [
        f"waiting for the brokers: {REFUSED}",
        "batch 3: maintenance, 0.1 s",
        "the brokers answer again, after 31 s",
        "batch 4: …",
    ]


def test_each_outage_is_reported(job: Job) -> None:
    for begin in (0, 100):
        job.reports(begin, f"transactions cannot be read: {REFUSED}")
        job.reports(begin + 9, "transactions are read again")
    line = f"waiting for the brokers: {REFUSED}"
    assert job.passed == [line, "the brokers answer again, after 9 s"] * 2


def test_a_missing_permission_is_no_outage(job: Job) -> None:
    lines = (
        "end offsets cannot be sampled, so lag is not updated: not authorized to read topic orders",
        "end offsets are sampled again",
    )
    job.reports(0, *lines)
    assert job.passed == [*lines]
