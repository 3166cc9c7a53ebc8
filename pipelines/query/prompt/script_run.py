"""Statements from a file or from standard input."""

import sys
from pathlib import Path

from pipelines.query.prompt.shell import Shell
from pipelines.query.prompt.steps import run_text
from pipelines.query.result_file import write_file
from pipelines.query.script import StepKind, split
from pipelines.runtime.errors import GrouplakeError, UsageError


def read_script(path: str) -> str:
    """The text of a file of statements, `-` for standard input. Raises UsageError if it cannot be read."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: byte {error.start} is not UTF-8") from error


def run_script(shell: Shell, text: str, where: str) -> None:
    """Execute the text of a script. The message of an error begins with its file and line."""
    try:
        run_text(shell, text)
    except GrouplakeError as error:
        (line,) = error.__notes__[-1:]
        raise type(error)(f"{where}:{line}: {error}") from error


def write_result(shell: Shell, text: str, path: str) -> None:
    """Write the rows of the only statement of a text to a file.

    Raises:
        UsageError: the text has another number of statements, or the file cannot be written.
    """
    steps = split(text).all_steps
    if len(steps) != 1 or steps[0].kind is not StepKind.STATEMENT:
        raise UsageError(f"--output takes the rows of one statement, not of {len(steps)} statements and commands")
    write_file(shell.source.snapshot.query(steps[0].text), path)
