"""Connections to the other nodes: the end of a process is seen at once, and not after its session timeout.

A node that was connected and whose port now refuses connections has ended. One that does not answer may be alive: for it the
session timeout counts.
"""

import selectors
import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from coordinator_core.protocol.groups import Node

_CONNECT_SECONDS = 1.0
_POLL_SECONDS = 0.2
_CHUNK = 4096


def is_running(node: Node) -> bool:
    """Whether the address of the node accepts a connection."""
    try:
        socket.create_connection((node.host, node.port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


class NodeWatch:
    """A thread with one connection per node, until `close`. `ended` is called in it, once for each end of a node."""

    def __init__(self, ended: Callable[[Node], None]) -> None:
        self._ended = ended
        self._wanted: frozenset[Node] = frozenset()
        self._connected: dict[Node, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node watch", daemon=True)
        self._thread.start()

    def watch(self, nodes: Collection[Node]) -> None:
        """Watch these nodes from now on, and no others."""
        self._wanted = frozenset(nodes)

    def close(self) -> None:
        """End the thread and the connections."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._connect_wanted()
                if not self._connected:
                    self._closing.wait(_POLL_SECONDS)
                    continue
                for key, _ in self._selector.select(_POLL_SECONDS):
                    self._read(key.data)
        finally:
            for node in tuple(self._connected):
                self._drop(node)
            self._selector.close()

    def _connect_wanted(self) -> None:
        wanted = self._wanted
        for node in self._connected.keys() - wanted:
            self._drop(node)
        for node in wanted - self._connected.keys():
            with suppress(OSError):
                self._connect(node)

    def _connect(self, node: Node) -> None:
        connection = socket.create_connection((node.host, node.port), _CONNECT_SECONDS)
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._connected[node] = connection
        self._selector.register(connection, selectors.EVENT_READ, node)

    def _read(self, node: Node) -> None:
        """Nodes send nothing without a request: what can be read is the end of the connection."""
        with suppress(OSError):
            if self._connected[node].recv(_CHUNK):
                return
        self._drop(node)
        try:
            self._connect(node)
        except ConnectionRefusedError:
            self._ended(node)
        except OSError:
            return

    def _drop(self, node: Node) -> None:
        connection = self._connected.pop(node)
        self._selector.unregister(connection)
        connection.close()
