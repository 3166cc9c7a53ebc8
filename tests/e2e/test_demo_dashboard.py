"""`grouplake demo --dashboard`: the page moves until Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TextIO

import httpx
import pytest
from event_streams import EventStream
from eventually import eventually
from following import LIMIT_SECONDS

_COMMAND = [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())", "demo"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_members_come_and_go_until_the_demo_is_interrupted(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [*_COMMAND, "--dashboard", "127.0.0.1:0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    lines: list[str] = []
    assert demo.stderr is not None
    reader = threading.Thread(target=_read, args=(demo.stderr, lines))
    reader.start()
    try:
        url = _when_printed(demo, lines, r"dashboard: (http://\S+)/")
        _when_printed(demo, lines, "members come and go now; Ctrl-C ends the demo")

        def lag() -> int:
            status = httpx.get(f"{url}/v3/kafka/tables/consumer/checkout/lag", timeout=60).json()["status"]
            return int(status["totallag"])

        eventually("the group has a lag", lag, lambda found: found > 0, patience_seconds=LIMIT_SECONDS)
        with EventStream(url, "tables").wait_until_open() as stream:
            for number, data in stream.wait_for(3):
                assert number == data["batch_id"]
            demo.send_signal(signal.SIGINT)
            stream.wait_until_ended()
        assert demo.wait(LIMIT_SECONDS) == 0
    finally:
        demo.kill()
        demo.wait()
        reader.join()
        demo.stderr.close()
    assert "Traceback" not in "".join(lines)


def _read(stream: TextIO, lines: list[str]) -> None:
    for line in stream:
        lines.append(line)


def _when_printed(demo: "subprocess.Popen[str]", lines: list[str], pattern: str) -> str:
    def found() -> str | None:
        match = re.search(pattern, "".join(lines))
        return match and match[match.re.groups]

    return (
        eventually(
            f"the demo prints {pattern!r}",
            found,
            bool,
            unless=lambda: None if demo.poll() is None else f"exit code {demo.returncode}: {''.join(lines)}",
            patience_seconds=LIMIT_SECONDS,
        )
        or ""
    )
