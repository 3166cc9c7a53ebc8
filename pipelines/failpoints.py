"""Fault points, for the tests that kill the job: named places at which a process ends itself, or halts.

`GROUPLAKE_FAULT=after:offsets` makes the process that reaches this point kill itself as `kill -9` would, at once and with nothing
tidied up; `GROUPLAKE_FAULT=after:offsets=STOP` halts it there until it gets SIGCONT. Without the variable nothing happens.
"""

import os
import signal

VARIABLE = "GROUPLAKE_FAULT"


def failpoint(point: str) -> None:
    """Called at the place named `point`."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    name, _, how = wanted.partition("=")
    if name == point:
        os.kill(os.getpid(), signal.SIGSTOP if how == "STOP" else signal.SIGKILL)
