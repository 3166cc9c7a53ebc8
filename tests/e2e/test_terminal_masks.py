"""Commands on a terminal, with names that clients chose: no control character and no bidirectional text reaches it."""

import base64
import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from log_builder import Log, member
from patience import PATIENCE_SECONDS
from status_story import Story
from transaction_logs import NOW_MS, TransactionLog

from coordinator_core.log.entries import LogRecord
from coordinator_core.state.transaction_state import ONGOING

_PROGRAM = Path(sys.executable).with_name("grouplake")
#: Sets the title, turns the text around, clears the screen (C1), forges a line, and rings.
HOSTILE = "pay\x1b]0;title\x07roll\u202eevil\u2066\x9b2J\r\nforged line\x00\u200b"
_FORBIDDEN = [chr(code) for code in (*range(9), *range(11, 13), *range(14, 32), *range(0x7F, 0xA0))] + list("\u202e\u2066\u200b")


def on_terminal(arguments: Sequence[str]) -> str:
    """What the command writes to a terminal of its own; line ends as a program writes them."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "PAGER": "", "COLUMNS": "300"}
    command = [str(_PROGRAM), *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        received = b""
        try:
            while part := os.read(controller, 65_536):
                received += part
        except OSError:
            # Linux reports the end of the other side as an error
            pass
        process.wait(PATIENCE_SECONDS)
    os.close(controller)
    return received.decode().replace("\r\n", "\n")


def in_a_pipe(arguments: Sequence[str]) -> str:
    return subprocess.run([str(_PROGRAM), *arguments], capture_output=True, check=False, timeout=PATIENCE_SECONDS).stdout.decode()


def expect_clean(text: str) -> None:
    assert not [character for character in _FORBIDDEN if character in text], repr(text)
    assert "\r" not in text
    assert "\nforged line" not in text


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A group with a hostile name, topic and client id, in two batches."""
    story = Story(str(tmp_path_factory.mktemp("hostile") / "tables"))
    story.at(0).commit(3, group=HOSTILE).sample()
    story.log.commit(0, 5, group=HOSTILE, topic=HOSTILE, at=story.log.now_ms)
    story.log.group([member(HOSTILE, topics=[HOSTILE])], group=HOSTILE)
    story.at(60).commit(9, group=HOSTILE).end(20).sample()
    return story.root


def dumped(path: Path, records: Sequence[LogRecord]) -> str:
    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    rows = [
        {"partition": r.partition, "offset": r.offset, "timestamp": r.timestamp, "key": text(r.key), "value": text(r.value)}
        for r in records
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return f"jsonl:{path}"


LAG = (
    ["--all-groups"],
    ["--all-groups", "--status", "--seconds", "--transactions", "--verbose"],
    ["--all-groups", "--members", "--verbose"],
    ["--all-groups", "--state"],
    ["--all-groups", "--format", "json"],
    ["--all-groups", "--format", "csv"],
    ["--group", HOSTILE + "x"],
)


@pytest.mark.parametrize("options", LAG, ids=range(len(LAG)))
def test_lag(tables: str, options: list[str]) -> None:
    # an argument of a process has no NUL
    shown = on_terminal(["lag", "--tables", tables, *(option.replace("\x00", "") for option in options)])
    assert "pay" in shown
    expect_clean(shown)


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_diff_and_sql(tables: str, form: str) -> None:
    for arguments in (
        ["diff", "--tables", tables, "--from", "0", "--format", form],
        ["sql", "--tables", tables, "SELECT group_id, topic FROM offsets", "--format", form],
    ):
        shown = on_terminal(arguments)
        assert "pay·" in shown or "pay\\u001b" in shown, shown
        expect_clean(shown)


@pytest.mark.parametrize("options", [["--format", "json"], ["--format", "classic"], ["--format", "classic", "--era", "1"]])
def test_show(tmp_path: Path, options: list[str]) -> None:
    log = Log(4)
    log.commit(0, 5, group=HOSTILE, topic=HOSTILE)
    log.group([member(HOSTILE, topics=[HOSTILE])], group=HOSTILE)
    log.raw(HOSTILE.encode(), b"x")
    command = ["show", "--source", dumped(tmp_path / "log.jsonl", log.records), *options]
    expect_clean(on_terminal(command))
    # a pipe gets the bytes of Kafka's formatter
    exact = in_a_pipe(command)
    assert HOSTILE in exact or json.dumps(HOSTILE, ensure_ascii=False)[1:-1] in exact


@pytest.mark.parametrize("form", ["json", "classic", "list", "describe"])
def test_show_transactions(tmp_path: Path, form: str) -> None:
    log = TransactionLog(4)
    log.state(HOSTILE, ONGOING, producer_id=7, topics={HOSTILE: (1, 0)}, start_ms=NOW_MS - 5_000)
    command = ["show", "--source", dumped(tmp_path / "log.jsonl", log.records), "--transactions", "--format", form]
    shown = on_terminal(command)
    assert "pay" in shown
    expect_clean(shown)
    assert ("\t" in shown) == (form in ("list", "describe"))


@pytest.mark.parametrize("form", ["text", "json"])
def test_doctor(tmp_path: Path, form: str) -> None:
    """The name of a folder stands for names of topics and hosts in findings."""
    folder = tmp_path / HOSTILE.replace("\x00", "").replace("\r\n", "")
    folder.mkdir()
    (folder / "batches").write_text("no folder")
    shown = on_terminal(["doctor", "--tables", str(folder), "--format", form])
    assert "pay·" in shown or "pay\\u001b" in shown, shown
    expect_clean(shown)


def test_errors(tmp_path: Path) -> None:
    shown = on_terminal(["lag", "--all-groups", "--tables", str(tmp_path / HOSTILE.replace("\x00", ""))])
    assert shown.startswith("grouplake: ")
    expect_clean(shown)
