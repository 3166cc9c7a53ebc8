"""Division of a text into statements, which end with `;`, and commands, lines that begin with `\\`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
    |(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<open>'|"|/\*)
    |(?P<end>;)
    |(?P<command>\\[^\n]*)
    |(?P<blank>\s+)
    |(?P<other>[^'"\-/;\\\s]+|[-/])""",
    re.DOTALL | re.VERBOSE,
)


class StepKind(Enum):
    """The kind of a step.

    A DEFERRED statement ends at the command that follows it on its line, such as `\\gx`, and that command runs it.
    """

    STATEMENT = "statement"
    DEFERRED = "deferred"
    COMMAND = "command"


@dataclass(frozen=True)
class ScriptStep:
    """A statement without its `;`, or a command with its `\\`, and the line on which it begins, counted from 1."""

    kind: StepKind
    text: str
    line: int


@dataclass(frozen=True)
class Script:
    """The complete steps of a text, and the rest: the beginning of a statement, or nothing."""

    steps: tuple[ScriptStep, ...]
    rest: str
    rest_line: int

    @property
    def all_steps(self) -> tuple[ScriptStep, ...]:
        """The steps of a text that has ended: the last statement needs no `;`."""
        return (*self.steps, ScriptStep(StepKind.STATEMENT, self.rest, self.rest_line)) if self.rest else self.steps


def split(text: str) -> Script:
    """Divide a text. A `;` or `\\` within quotes or comments divides nothing; comments before a statement are left out."""
    steps: list[ScriptStep] = []
    start: int | None = None
    end = 0
    for kind, token in _tokens(text):
        if kind in ("end", "command"):
            if start is not None:
                ended = StepKind.STATEMENT if kind == "end" else StepKind.DEFERRED
                steps.append(ScriptStep(ended, text[start:end], _line(text, start)))
            start = None
            if kind == "command":
                steps.append(ScriptStep(StepKind.COMMAND, token[0].rstrip(), _line(text, token.start())))
        elif kind not in ("blank", "comment"):
            start = token.start() if start is None else start
            end = token.end()
            if kind == "open":
                end = len(text)
                break
    if start is None:
        return Script(tuple(steps), "", 0)
    return Script(tuple(steps), text[start:end], _line(text, start))


def is_complete(text: str) -> bool:
    """True if no statement has begun without its end."""
    return not split(text).rest


def _tokens(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for token in _TOKEN.finditer(text):
        assert token.lastgroup is not None
        yield token.lastgroup, token


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
