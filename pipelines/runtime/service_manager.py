"""Notifications to a service manager such as systemd, by the protocol of sd_notify(3).

Without `$NOTIFY_SOCKET` every function does nothing: under another supervisor, in a shell, and in units without `Type=notify`.
"""

import os
import socket

from pipelines.runtime.progress import Progress

_SOCKET = "NOTIFY_SOCKET"
#: First character of addresses in the abstract namespace; the system call expects a zero byte in its place.
_ABSTRACT = "@"


def notify_ready() -> None:
    """Report that the start is complete: units ordered after this one can start."""
    _send("READY=1")


def notify_stopping() -> None:
    """Report the shutdown, also of a process that ends by itself."""
    _send("STOPPING=1")


def with_status(progress: Progress) -> Progress:
    """Wrap `progress` so that its newest line is also the status that `systemctl status` shows."""

    def progress_and_status(line: str) -> None:
        progress(line)
        _send(f"STATUS={line}")

    return progress_and_status


def _send(assignment: str) -> None:
    address = os.environ.get(_SOCKET)
    if not address:
        return
    if address.startswith(_ABSTRACT):
        address = "\0" + address.removeprefix(_ABSTRACT)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            # the manager reads lines: a second line of the text would be a second assignment
            connection.sendto(assignment.replace("\n", " ").encode(), address)
    except OSError:
        # a manager that is gone must not end the work
        return
