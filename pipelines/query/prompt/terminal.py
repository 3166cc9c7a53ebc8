"""The prompt on a terminal, with prompt-toolkit: editing, history, completion."""

from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

from pipelines.query.prompt.completion import complete
from pipelines.query.prompt.loop import prompt_text, run_until_quit
from pipelines.query.prompt.shell import Shell
from pipelines.query.script import is_complete


def run_on_terminal(shell: Shell, history: Path | None, terminal: Input | None = None, screen: Output | None = None) -> None:
    """Read and execute until `\\q` or Ctrl-D. Enter ends a complete statement, and begins a new line in others."""
    stored: History = InMemoryHistory() if history is None else FileHistory(str(history))
    session: PromptSession[str] = PromptSession(
        history=stored,
        completer=_StatementCompleter(shell),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_key_bindings(),
        prompt_continuation=lambda width, *_: "-> ".rjust(width),
        input=terminal,
        output=screen,
    )
    run_until_quit(shell, lambda: session.prompt(prompt_text(shell)))


class _StatementCompleter(Completer):
    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        fragment, candidates = complete(self._shell.source, document.text_before_cursor, document.text_after_cursor)
        for candidate in candidates:
            yield Completion(candidate.text, -len(fragment), display_meta=candidate.kind)


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
