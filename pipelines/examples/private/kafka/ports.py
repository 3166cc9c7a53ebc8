"""Reservation of ports on 127.0.0.1, for servers that must know their port before the start and keep it across restarts.

The ports lie below the ephemeral range, from which the system takes ports of clients and for `port 0`: otherwise a client could
get the port of a server during its restart. A lock file per port excludes other processes of the same user.
"""

import contextlib
import fcntl
import os
import random
import socket
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pipelines.examples.private.kafka.distribution import PrivateKafkaError

#: Above the conventional ports of services, Kafka's 9092 among them.
LOWEST_PORT = 15_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: Without that file: the lowest value of the supported systems (Linux 32768, macOS 49152).
_FIRST_EPHEMERAL_PORT = 32_768
_ATTEMPTS = 1_000


class NoPort(PrivateKafkaError):
    """Every port that was tried is in use."""


class PortReservation:
    """A port reserved until `release`, or until nothing refers to this object, whether or not a server listens on it."""

    def __init__(self, host: str = "127.0.0.1", draw: Callable[[], int] | None = None) -> None:
        """Reserve a port. `draw` returns candidates, by default random ones. Raises NoPort if 1,000 in a row are in use."""
        draw = draw or _random_port
        for _ in range(_ATTEMPTS):
            port = draw()
            lock = _locked(port)
            if lock is None:
                continue
            if _is_free(host, port):
                self.port = port
                # closes without a warning: the traceback of a failed test holds its reservations until some later test
                self._release = weakref.finalize(self, lock.close)
                return
            lock.close()
        raise NoPort(f"{_ATTEMPTS} ports of {host} between {LOWEST_PORT} and {_first_ephemeral() - 1} were tried, all are in use")

    def release(self) -> None:
        """Release the port."""
        self._release()


def _random_port() -> int:
    # unseeded: parallel test processes with the same seed would draw the same ports
    return random.SystemRandom().randrange(LOWEST_PORT, _first_ephemeral())


def _first_ephemeral() -> int:
    try:
        first = int(_EPHEMERAL_RANGE.read_text().split()[0])
    except OSError:
        first = _FIRST_EPHEMERAL_PORT
    return max(first, LOWEST_PORT + 1_000)


def _locked(port: int) -> IO[str] | None:
    folder = Path(tempfile.gettempdir()) / f"grouplake-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = (folder / str(port)).open("a")
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    lock.close()
    return None


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as tried:
        # as servers set it; otherwise connections in TIME_WAIT block the port
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError:
            return False
        return True
