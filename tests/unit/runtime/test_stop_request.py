"""Stop requests and the ends of child processes, which a signal to a process group reaches at the same time."""

import threading

from pipelines.runtime.stop_request import StopRequest


def test_a_request_that_comes_a_moment_later_explains_the_end_of_a_child() -> None:
    stop = StopRequest()
    threading.Timer(0.1, stop.request).start()
    assert not stop.is_requested
    assert stop.explains_the_end_of_a_child()


def test_without_a_request_the_end_of_a_child_is_an_error() -> None:
    assert not StopRequest().explains_the_end_of_a_child()
