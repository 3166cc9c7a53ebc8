"""Failpoints: named places in the code at which tests kill or stop a process.

With `GROUPLAKE_FAULT=after:offsets` the process that reaches this failpoint sends itself SIGKILL; with
`GROUPLAKE_FAULT=after:offsets=STOP`, SIGSTOP, and it continues on SIGCONT. Without the variable a failpoint has no effect.
"""

import os
import signal

VARIABLE = "GROUPLAKE_FAULT"


def failpoint(point: str) -> None:
    """Kill or stop this process if the variable names `point`."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    name, _, how = wanted.partition("=")
    if name == point:
        os.kill(os.getpid(), signal.SIGSTOP if how == "STOP" else signal.SIGKILL)
