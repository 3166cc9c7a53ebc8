"""Clients of franz-go (`benchmarks/clients`) as a process: built once into the cache folder, one run per measurement."""

import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.coordinators import Server
from benchmarks.processes import cpu_seconds
from pipelines.runtime.cache.folder import cache_root

_SOURCES = Path(__file__).with_name("clients")
_BUILD_SECONDS = 500


@dataclass(frozen=True, slots=True)
class Load:
    """Result of one run: operations and batches in `seconds`, latencies in ms, CPU seconds of the server and of the clients."""

    done: int
    batches: int
    bytes: int
    seconds: float
    p50_ms: float
    p99_ms: float
    server_cpu: float
    client_cpu: float

    @property
    def per_second(self) -> float:
        """Operations per second."""
        return self.done / self.seconds

    @property
    def server_us(self) -> float:
        """CPU time of the server per operation, in µs."""
        return self.server_cpu / max(self.done, 1) * 1e6


def clients_program() -> Path:
    """Return the compiled program. Raises FileNotFoundError if Go is not installed, RuntimeError if the build fails."""
    go = shutil.which("go")
    if go is None:
        raise FileNotFoundError("no `go` in PATH: install Go 1.25 or newer")
    digest = hashlib.sha256()
    for path in sorted(_SOURCES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    program = cache_root() / "clients" / f"franz-{digest.hexdigest()[:16]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        command = [go, "build", "-buildvcs=false", "-o", str(program), "."]
        built = subprocess.run(command, cwd=_SOURCES, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
        if built.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed in {_SOURCES}: {built.stdout}{built.stderr}")
    return program


def run_clients(server: Server, mode: str, topic: str, seconds: float, **options: float | str) -> Load:
    """Run the clients of a mode against the server; `options` are flags of the program. Raises RuntimeError if they fail."""
    command = [str(clients_program()), mode, server.bootstrap, topic, "-length", f"{seconds}s"]
    command += [text for name, value in options.items() for text in (f"-{name.replace('_', '-')}", str(value))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        begin = process.stdout.readline()
        if begin.strip() != "begin":
            raise RuntimeError(f"{' '.join(command)} failed: {process.stderr.read()[-2000:]}")
        server_before, client_before = server.cpu_seconds(), cpu_seconds(process.pid)
        found: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
        server_cpu = server.cpu_seconds() - server_before
        # of a process that has ended, too, as long as it is not waited for
        client_cpu = cpu_seconds(process.pid) - client_before
        if not found:
            raise RuntimeError(f"{' '.join(command)} failed: {process.stderr.read()[-2000:]}")
    return Load(**found, server_cpu=server_cpu, client_cpu=client_cpu)
