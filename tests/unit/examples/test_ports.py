"""Fixed ports lie below the ephemeral range, and a reserved one is not given out twice."""

import gc
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from pipelines.examples.private.kafka import ports
from pipelines.examples.private.kafka.ports import NoPort, PortReservation

ROOT = Path(__file__).parents[3]
#: Linux' default range; clients and `port 0` take theirs from it.
EPHEMERAL = range(32_768, 61_000)
#: HOST:PORT, or a port that is assigned to a name.
_PORT = re.compile(r"(?<=[\w\].]):(\d{4,5})\b|\bport\s*=\s*(\d{4,5})\b")


def fixed_ports(path: Path) -> Iterator[int]:
    for match in _PORT.finditer(path.read_text(encoding="utf-8")):
        yield int(match[1] or match[2])


def test_no_fixed_port_lies_in_the_ephemeral_range() -> None:
    pages = chain(ROOT.glob("*.md"), ROOT.glob("docs/**/*.md"), ROOT.glob("conf/*"), ROOT.glob("deploy/*"))
    code = chain.from_iterable(
        ROOT.glob(f"{folder}/**/*.py") for folder in ("tests", "benchmarks", "pipelines", "coordinator_core")
    )
    found = {
        f"{path.relative_to(ROOT)}: {port}"
        for path in chain(pages, code)
        if path.is_file()
        for port in fixed_ports(path)
        if port in EPHEMERAL
    }
    assert found == set()


def test_a_reserved_port_is_below_the_ephemeral_range_and_can_be_listened_on() -> None:
    reserved = PortReservation()
    assert ports.LOWEST_PORT <= reserved.port < EPHEMERAL.start
    socket.create_server(("127.0.0.1", reserved.port)).close()
    reserved.release()


def test_no_other_process_gets_a_reserved_port() -> None:
    reserved = PortReservation()
    script = f"""
from pipelines.examples.private.kafka.ports import NoPort, PortReservation
try:
    print(PortReservation(draw=lambda: {reserved.port}).port)
except NoPort as error:
    print(error)
"""

    def refusal() -> str:
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()

    assert re.fullmatch(r"1000 ports of 127\.0\.0\.1 between 15000 and \d+ were tried, all are in use", refusal())
    reserved.release()
    assert refusal() == str(reserved.port)


def test_a_reservation_ends_with_its_last_reference() -> None:
    port = PortReservation().port
    gc.collect()
    PortReservation(draw=lambda: port).release()


def test_a_port_with_a_server_is_not_reserved() -> None:
    reserved = PortReservation()
    reserved.release()
    with socket.create_server(("127.0.0.1", reserved.port)), pytest.raises(NoPort):
        PortReservation(draw=lambda: reserved.port)
