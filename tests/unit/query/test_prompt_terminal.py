"""The prompt on prompt-toolkit's terminal: keys in, executed statements out."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from two_clusters import two_clusters

from pipelines.cli.commands import sql
from pipelines.query.prompt import terminal
from pipelines.query.prompt.completion import Candidate, complete
from pipelines.query.prompt.loop import prompt_text, run_plain
from pipelines.query.prompt.shell import Shell
from pipelines.query.prompt.source import SnapshotSource
from pipelines.query.prompt.terminal import run_on_terminal

ENTER, TAB, UP, CTRL_C, CTRL_D = "\r", "\t", "\x1b[A", "\x03", "\x04"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return two_clusters(tmp_path_factory.mktemp("clusters"))["east"]


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def typed(root: str, keys: PipeInput, text: str, history: Path | None = None) -> str:
    """What the prompt prints until the end of the keys."""
    out = io.StringIO()
    keys.send_text(text + CTRL_D)
    run_on_terminal(Shell(SnapshotSource({"": root}), "csv", out), history, keys, DummyOutput())
    return out.getvalue()


def test_enter_runs_a_complete_statement(root: str, keys: PipeInput) -> None:
    assert typed(root, keys, f"SELECT{ENTER}group_id FROM groups{ENTER}ORDER BY 1;{ENTER}") == "group_id\naudit\nbilling\n"


def test_a_quoted_semicolon_does_not_end_a_statement(root: str, keys: PipeInput) -> None:
    assert typed(root, keys, f"SELECT ';{ENTER}' AS x;{ENTER}") == 'x\n";\n"\n'


def test_commands_need_no_semicolon(root: str, keys: PipeInput) -> None:
    assert typed(root, keys, f"\\timing{ENTER}\\q{ENTER}SELECT 1;{ENTER}") == "Timing is on.\n"


def test_tab_completes(root: str, keys: PipeInput, monkeypatch: pytest.MonkeyPatch) -> None:
    def completed(source: SnapshotSource, before: str, after: str) -> tuple[str, list[Candidate]]:
        # prompt-toolkit completes in the background: the keys after Tab follow the completions
        found = complete(source, before, after)
        keys.send_text(f";{ENTER}{CTRL_D}")
        return found

    monkeypatch.setattr(terminal, "complete", completed)
    out = io.StringIO()
    keys.send_text(f"SELECT count(*) AS n FROM quar{TAB}")
    run_on_terminal(Shell(SnapshotSource({"": root}), "csv", out), None, keys, DummyOutput())
    assert out.getvalue() == "n\n0\n"


def test_ctrl_c_cancels_the_input(root: str, keys: PipeInput) -> None:
    assert typed(root, keys, f"SELECT 1 AS x{ENTER}, {CTRL_C}SELECT 2 AS x;{ENTER}") == "x\n2\n"


def test_an_error_is_one_line_and_ends_nothing(root: str, keys: PipeInput, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(root, keys, f"SELECT nothing;{ENTER}SELECT 2 AS x;{ENTER}") == "x\n2\n"
    error = capsys.readouterr().err
    assert error.startswith("error: query failed: ")
    assert error.count("\n") == 1


def test_the_history_has_the_statements_of_earlier_prompts(root: str, tmp_path: Path) -> None:
    history = tmp_path / "history"
    with create_pipe_input() as keys:
        typed(root, keys, f"SELECT 1 AS x;{ENTER}", history)
    with create_pipe_input() as keys:
        assert typed(root, keys, f"{UP}{ENTER}", history) == "x\n1\n"


def test_the_prompt_names_the_batch(root: str) -> None:
    assert prompt_text(Shell(SnapshotSource({"": root}), "csv", io.StringIO())) == "batch 1> "


def test_the_prompt_without_prompt_toolkit(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["SELECT 1", "AS x;", "SELECT nothing;", "\\g"])
    prompts = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        line = next(lines, None)
        if line is None:
            raise EOFError
        return line

    monkeypatch.setattr("builtins.input", answer)
    out = io.StringIO()
    run_plain(Shell(SnapshotSource({"": root}), "csv", out))
    assert out.getvalue() == "x\n1\n"
    assert prompts == ["batch 1> ", "      -> ", *["batch 1> "] * 3]


def test_a_missing_prompt_toolkit_is_reported(
    root: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sql, "find_spec", lambda _: None)
    monkeypatch.setattr("builtins.input", lambda _: "\\q")
    sql.run_prompt(Shell(SnapshotSource({"": root}), "csv", io.StringIO()))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("Statements end with ;  \\? lists the commands, \\q quits.")
    assert lines[1].startswith(f"{root}, batch 1 of 20")
    assert lines[2] == "No completion, because prompt-toolkit is not installed: pip install 'grouplake[prompt]'"
