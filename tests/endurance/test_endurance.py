"""Job, pages, alerts and coordinator for ninety minutes: nothing grows, nothing is lost, one line per event.

`ENDURANCE_MINUTES` is the length of the load (`make endurance MINUTES=90`). A sixth of it is an outage of the broker.
"""

import os
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from broker_answers import differences
from endurance_run import OFFSETS_PARTITIONS, PARTITIONS, TOPIC, Endurance, Parts, Record
from first_use import without_recording
from hostile_clients import NAMES
from scenario_full import answers

from coordinator_core.service.node.repeated_events import LINES
from pipelines.cli.main import main
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.check import check

MINUTES = float(os.environ.get("ENDURANCE_MINUTES", "6"))
SEED = int(os.environ.get("SEED", "1"))
pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(int(MINUTES * 60) + 3_000)]

#: Memory is flat if the last quarter of the longest life, without the broker's outage, is at most this much above the second.
_GROWTH_SHARE, _GROWTH_MEBIBYTES = 1.15, 48
#: Progress of a job: lines about batches, starts and maintenance.
_PROGRESS = re.compile(
    r"batch \d+: |starting Spark|ready: |offsets\.retention|maintain|compact|vacuum|stopping|stopped|.* since|following"
)
#: Status codes of hostile visits. 500 is none of them.
_ANSWERS = {"200", "303", "307", "308", "400", "404", "405", "421", "503"}


def test_endurance(tmp_path: Path) -> None:
    endurance = Endurance(tmp_path, MINUTES * 60, SEED)
    with endurance.run() as parts:
        print(text_of(endurance.record), flush=True)
        expectations = (
            partial(expect_one_line_per_event, endurance.record),
            partial(expect_answers, endurance.record),
            partial(expect_flat_memory, endurance.record),
            partial(expect_the_brokers_answers, endurance, parts),
            partial(expect_the_coordinators_answers, parts, tmp_path),
        )
        # a run is too long to end at the first of them
        if failures := [failure for expect in expectations if (failure := failure_of(expect)) is not None]:
            raise ExceptionGroup(f"{len(failures)} of {len(expectations)} expectations", failures)


def failure_of(expect: Callable[[], None]) -> Exception | None:
    """The failure of an expectation."""
    try:
        expect()
    except Exception as failure:
        return failure
    return None


def text_of(record: Record) -> str:
    """The numbers of a run."""
    growth = ", ".join(f"{name} {before:.0f} → {after:.0f}" for name, (before, after) in record.growth.items())
    courses = (
        f"{service}, MiB of {program}: {' '.join(f'{each:.0f}' for each in course)}"
        for service, programs in record.memory.items()
        for program, course in programs.items()
    )
    events = ", ".join(f"{each.kind} for {each.end - each.start:.0f} s" for each in record.events)
    return "\n".join(
        [
            f"{record.commits:,} commits to the broker, {record.coordinator_commits:,} to the coordinator; {events}",
            f"MiB in the second and the last quarter without the outage: {growth}",
            *courses,
            *(f"{name}: {dict(found)}" for name, found in record.nuisances.items()),
            f"exits: { ({name: [code for _, code in each.exits] for name, each in record.services.items()}) }",
            *(f"{name}: {line}" for name, each in record.services.items() for line in other_lines(each.texts())),
            *(f"dashboard: {line}" for line in record.dashboard_lines[:40]),
            f"coordinator: {dict(record.coordinator_events)}",
        ]
    )


def other_lines(lines: list[str]) -> list[str]:
    """The lines that are no progress."""
    return [line for line in without_recording(lines) if not _PROGRESS.match(line)]


def expect_one_line_per_event(record: Record) -> None:
    """An outage is a line at its begin and one at its end; a full disk ends the job with one line each time."""
    job = record.services["job"]
    for event, following in zip_longest(record.events, record.events[1:]):
        until = job.lines[-1].at if following is None else following.start
        lines = [line.text for line in job.lines if event.start <= line.at < until]
        if event.kind == "broker":
            found = other_lines(lines)
            assert [line.split(":")[0].split(",")[0] for line in found] == [
                "waiting for the brokers",
                "the brokers answer again",
            ], found
    ends = [line for line in job.texts() if line.startswith("grouplake: ")]
    assert len(ends) == sum(code != 0 for _, code in job.exits), ends
    assert all("no space left on device" in line for line in ends), ends
    for service in record.services.values():
        assert not [line for line in service.texts() if "Traceback" in line], service.name
    assert not [line for line in record.dashboard_lines if "Traceback" in line]
    disks = sum(event.kind == "disks" for event in record.events)
    assert record.coordinator_events["appends accepted"] == disks
    assert 1 <= record.coordinator_events["append refused"] <= 2 * LINES * OFFSETS_PARTITIONS * disks
    hostile = record.nuisances["bytes"]["garbage"]
    assert record.coordinator_events["connection ended"] <= hostile


def expect_answers(record: Record) -> None:
    """Every visit has an answer, and none is an error of the server."""
    visits = record.nuisances["visitors"]
    assert visits.total() > 60
    assert not visits.keys() - _ANSWERS, visits
    told = Counter(alert["status"] for body in record.notifications for alert in body["alerts"])
    assert told["firing"] == told["resolved"] >= 1, told


def expect_flat_memory(record: Record) -> None:
    assert record.growth.keys() == {"job", "alerts", "dashboard", "coordinator"}
    grown = {name: (b, a) for name, (b, a) in record.growth.items() if a > b * _GROWTH_SHARE + _GROWTH_MEBIBYTES}
    assert not grown, f"MiB in the second and in the last quarter: {grown}"


def expect_the_brokers_answers(endurance: Endurance, parts: Parts) -> None:
    expected = in_a_new_process(answers_of_broker, parts.broker.bootstrap, [*parts.committers.groups, *NAMES])
    assert check(str(parts.tables)) == []
    assert differences(str(parts.tables), expected) == []
    assert endurance.record.services["alerts"].stop() == 0


def expect_the_coordinators_answers(parts: Parts, folder: Path) -> None:
    """The tables of the coordinator's log equal the answers of the coordinator."""
    committed = in_a_new_process(answers_of_coordinator, parts.coordinator.bootstrap, parts.coordinator_committers.groups)
    assert all(committed.values())
    tables = folder / "of-the-coordinator"
    assert main(["run", "--source", f"segments:{parts.coordinator.directory}", "--tables", str(tables)]) == 0
    assert differences(str(tables), {"committed": committed}) == []


def in_a_new_process(ask: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Ask with clients of a process of their own: librdkafka ended this one once, after ninety minutes of clients.

    Raises BrokenProcessPool if it ends that process, too.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(ask, *arguments).result()


def answers_of_broker(bootstrap: str, groups: list[str]) -> dict[str, Any]:
    with Clients(bootstrap) as clients:
        return answers(clients, bootstrap, groups)


def answers_of_coordinator(bootstrap: str, groups: list[str]) -> dict[str, Any]:
    """Group → rows of OffsetFetch."""
    with Clients(bootstrap) as clients:
        return {group: [list(row) for row in clients.committed(group, [TOPIC], PARTITIONS)] for group in groups}
