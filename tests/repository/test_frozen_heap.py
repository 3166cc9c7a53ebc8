"""The garbage collector of a test run (`frozen_heap.py`)."""

import gc
import weakref


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_what_was_there_before_the_first_test_is_not_looked_at_again() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000


def test_cycles_of_tests_are_collected() -> None:
    cycle = weakref.ref(Cycle())
    gc.collect()
    assert cycle() is None
