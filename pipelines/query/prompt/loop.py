"""The loop of a prompt, and the prompt without prompt-toolkit."""

import sys
from collections.abc import Callable
from contextlib import suppress

from pipelines.query.prompt.shell import Shell
from pipelines.query.prompt.steps import run_text
from pipelines.query.script import is_complete
from pipelines.runtime.errors import GrouplakeError


def prompt_text(shell: Shell) -> str:
    """The prompt, with the batch of the last statement."""
    return f"{shell.source.label}> "


def run_until_quit(shell: Shell, read: Callable[[], str]) -> None:
    """Read and execute until `\\q` or the end of the input. Ctrl-C cancels an input or ends a statement; errors end neither."""
    while not shell.has_quit:
        try:
            run_text(shell, read())
        except GrouplakeError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def run_plain(shell: Shell) -> None:
    """The prompt of Python's `input`, without completion and stored history."""
    with suppress(ImportError):
        # gives `input` line editing
        import readline  # noqa: F401

    run_until_quit(shell, lambda: _read_statement(shell))


def _read_statement(shell: Shell) -> str:
    prompt = prompt_text(shell)
    text = input(prompt)
    while not is_complete(text):
        text += "\n" + input("-> ".rjust(len(prompt)))
    return text
