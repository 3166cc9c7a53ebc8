"""The order of test files: every file runs once, the longest first, and few workers create the same expensive fixture."""

import json

from file_schedule import DURATIONS, TESTS, WaitingFile, expensive_fixture, next_file
from hypothesis import given
from hypothesis import strategies as st

ROOT = TESTS.parent

FILES = st.lists(
    st.builds(
        WaitingFile,
        st.uuids().map(str),
        st.floats(0.1, 200),
        st.sampled_from([None, None, "spark", "broker", "server"]),
    ),
    max_size=40,
)


def run(files: list[WaitingFile], workers: int) -> dict[int, list[WaitingFile]]:
    """Simulate a run: the worker that is free first gets the next file."""
    waiting, busy_until = list(files), dict.fromkeys(range(workers), 0.0)
    done: dict[int, list[WaitingFile]] = {worker: [] for worker in busy_until}
    while busy_until:
        worker = min(busy_until, key=busy_until.__getitem__)
        fixtures = {
            number: {file.fixture for file in ran if file.fixture} for number, ran in done.items() if number in busy_until
        }
        file = next_file(waiting, fixtures[worker], set[str]().union(*fixtures.values()))
        if file is None:
            del busy_until[worker]
            continue
        waiting.remove(file)
        done[worker].append(file)
        busy_until[worker] += file.seconds
    return done


@given(FILES, st.integers(1, 4))
def test_every_file_runs_once(files: list[WaitingFile], workers: int) -> None:
    done = [file for ran in run(files, workers).values() for file in ran]
    assert sorted(file.path for file in done) == sorted(file.path for file in files)


def test_the_longest_file_is_first_and_each_worker_begins_with_another_fixture() -> None:
    files = [
        WaitingFile(f"{fixture}-{seconds}", seconds, fixture) for fixture in ("spark", "broker", None) for seconds in (5, 9, 7)
    ]
    assert {worker: [file.path for file in ran] for worker, ran in run(files, 3).items()} == {
        0: ["spark-9", "spark-7", "spark-5"],
        1: ["broker-9", "broker-7", "broker-5"],
        2: ["None-9", "None-7", "None-5"],
    }


def test_another_worker_helps_with_long_files_of_a_fixture_only() -> None:
    long = [WaitingFile(str(number), 40, "spark") for number in range(4)]
    assert [len(ran) for ran in run(long, 2).values()] == [2, 2]
    short = [WaitingFile(str(number), 5, "spark") for number in range(4)]
    assert [len(ran) for ran in run(short, 2).values()] == [4, 0]


def test_the_fixture_of_a_file_is_found_in_parameters_and_marks() -> None:
    assert expensive_fixture("def test_x(spark: int, shop: int) -> None: ...") == "spark"
    assert expensive_fixture("def spark_free(tmp_path): ...") is None
    assert expensive_fixture('pytestmark = [pytest.mark.long, pytest.mark.usefixtures("spark")]') == "spark"


def test_measured_files_exist() -> None:
    assert [path for path in json.loads(DURATIONS.read_text(encoding="utf-8")) if not (ROOT / path).is_file()] == []
