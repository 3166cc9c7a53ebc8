"""The watchdog of runs: signs of life, and the end without them."""

import threading

from patience import PATIENCE_SECONDS

from pipelines.runtime.watchdog import Watchdog


class Hung:
    """Collects the last lines of runs that hang."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.event = threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.event.set()


def test_a_process_without_progress_is_reported_once_with_its_last_line() -> None:
    hung, shown = Hung(), list[str]()
    with Watchdog(0.05, hung) as watchdog:
        watchdog.watching(shown.append)("batch 7: 3 records read")
        assert hung.event.wait(PATIENCE_SECONDS)
    assert (hung.lines, shown) == (["batch 7: 3 records read"], ["batch 7: 3 records read"])


def test_each_sign_of_life_begins_the_time_anew() -> None:
    now, hung = [0.0], Hung()
    with Watchdog(100, hung, lambda: now[0]) as watchdog:
        report = watchdog.watching(lambda _line: None)
        for at, alive in ((90, watchdog.alive), (180, lambda: report("a line")), (270, watchdog.alive)):
            now[0] = at
            alive()
        assert not hung.event.wait(0.05)  # runs out: nothing may be reported
    assert hung.lines == []


def test_without_a_limit_nothing_is_watched() -> None:
    threads = threading.active_count()
    with Watchdog(0, Hung()):
        assert threading.active_count() == threads
