"""The coordinator as a process of its own, and a client of one connection that speaks to it in bytes."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from coordinator_core.coordinator.messages.offsets import OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit
from coordinator_core.coordinator.messages.versions import ApiKey
from coordinator_core.state.offsets import TopicPartition
from coordinator_core.wire import AnyApiKey, Part, read_response, write_request

#: The command line, in a process of its own.
GROUPLAKE = (sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())")
PLACE = TopicPartition("orders", 0)
_READY = re.compile(r"listening on [^ ]*:(\d+)(?:, http://([^/]*)/)?")


class CoordinatorProcess:
    """Started, and ready. `settings` are lines of `[coordinator]`."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        directory.mkdir(exist_ok=True)
        conf = directory / "coordinator.toml"
        lines = {"admin_listen": "127.0.0.1:0", "group_initial_rebalance_delay_ms": 50} | settings
        topics = "[coordinator.topics]\norders = 4\n"
        conf.write_text("[coordinator]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items()) + topics)
        self.log = directory / "log"
        command = [*GROUPLAKE, "coordinator", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*command, "--log", f"segments:{self.log}", "--conf", str(conf)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = _READY.match(line)
        assert match, f"{line}{self.process.stderr.read() if self.process.stderr else ''}"
        self.port, self.admin = int(match[1]), match[2]
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(json.loads(line) if line.startswith("{") else {"event": "text", "text": line})

    def events(self, event: str) -> list[dict[str, Any]]:
        """Lines of the log about this."""
        return [line for line in tuple(self.lines) if line["event"] == event]

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of an HTTP request."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def wait_until_loaded(self) -> None:
        """Every partition answers."""
        while self.get("/health")[0] != 200:
            pass

    def memory_kib(self) -> int:
        """Resident memory of the process, from /proc."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=30)
        self._reader.join(timeout=10)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code


class Wire:
    """One connection."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        self._number = 0

    def frame(self, api: AnyApiKey, version: int, *parts: Part) -> bytes:
        """A request with its length."""
        self._number += 1
        data = write_request(api, version, parts, self._number, "wire")
        return len(data).to_bytes(4) + data

    def send(self, api: AnyApiKey, version: int, *parts: Part) -> None:
        self.socket.sendall(self.frame(api, version, *parts))

    def receive(self) -> bytes:
        """The next frame; b"" when the connection has ended."""
        try:
            size = self._take(4)
            return self._take(int.from_bytes(size)) if size else b""
        except ConnectionError:
            return b""

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                return b""
            data += more
        return data

    def ask(self, api: AnyApiKey, version: int, *parts: Part) -> Any:
        """The response to the only part."""
        self.send(api, version, *parts)
        frame = self.receive()
        if not frame:
            raise ConnectionError("the coordinator hung up")
        return read_response(api, version, frame).parts[0]

    def commit(self, offset: int, group: str = "g") -> Any:
        request = OffsetCommitRequest(group, {PLACE: OffsetToCommit(offset)})
        return self.ask(ApiKey.OFFSET_COMMIT, 8, request).errors[PLACE]

    def committed(self, group: str = "g") -> int:
        response = self.ask(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(group, (PLACE,)))
        return int(response.offsets[PLACE].offset)

    def close(self) -> None:
        self.socket.close()
