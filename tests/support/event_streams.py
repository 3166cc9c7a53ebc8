"""A client of server-sent events over a real connection."""

import json
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

import httpx
from eventually import eventually


class EventStream:
    """A connection to `/c/{cluster}/events`, read by a thread. `events` are those until now, as (id, data)."""

    def __init__(self, url: str, cluster: str = "east", *, last_event_id: int | None = None, after: int | None = None) -> None:
        self.events: list[tuple[int, dict[str, Any]]] = []
        self.lines: list[str] = []
        self.is_ended = False
        self._client = httpx.Client(timeout=None)
        headers = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
        query = {} if after is None else {"after": str(after)}
        request = self._client.build_request("GET", f"{url}/c/{cluster}/events", headers=headers, params=query)
        self.response = self._client.send(request, stream=True)
        self.status = self.response.status_code
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait_for(self, count: int) -> list[tuple[int, dict[str, Any]]]:
        """Wait until `count` events have arrived."""
        return eventually(f"{count} events", lambda: list(self.events), lambda found: len(found) >= count)

    def wait_until_open(self) -> "EventStream":
        """Wait until the server has sent the first line."""
        eventually("the stream is open", lambda: list(self.lines), bool)
        return self

    def wait_until_ended(self) -> None:
        """Wait until the server has ended the stream."""
        eventually("the stream ends", lambda: self.is_ended, bool)

    def close(self) -> None:
        """Close the connection. The reader waits in `recv`, from which only a shutdown wakes it before the next event."""
        connection: socket.socket = self.response.extensions["network_stream"].get_extra_info("socket")
        # the server may have closed it
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.response.close()
        self._client.close()

    def __enter__(self) -> "EventStream":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    def _read(self) -> None:
        data = None
        try:
            for line in self.response.iter_lines():
                self.lines.append(line)
                name, _, value = line.partition(": ")
                if name == "data":
                    data = json.loads(value)
                elif name == "id":
                    self.events.append((int(value), data or {}))
        except (httpx.HTTPError, httpx.StreamError, OSError):
            # the test closed the connection
            return
        finally:
            self.is_ended = True
