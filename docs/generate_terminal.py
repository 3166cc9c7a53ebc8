"""Writes docs/images/terminal.svg, the terminal picture of README, from a real run of the commands that it shows.

python docs/generate_terminal.py
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

IMAGE = Path(__file__).parent / "images" / "terminal.svg"
#: As typed; a line break in a command is one on the screen.
COMMANDS = (
    "grouplake run --source segments:log --tables groups --expiry apply --now 1795834200000",
    """grouplake sql --tables groups "
    SELECT record_timestamp, generation, change, detail FROM group_history
    WHERE group_id = 'billing-workers' AND change IN ('rebalance', 'member_joined', 'assignment_changed')
    ORDER BY log_offset\"""",
    """grouplake sql --tables groups "
    SELECT group_id, topic, partition, commits, min_offset, committed_offset
    FROM offset_history WHERE change = 'rewind' ORDER BY group_id\"""",
)
_PROMPT = "$ "
#: Lines that a machine prints on its first runs only.
_ONCE = ("downloading ", "  ", "compiling ", "recording ")
_SIZE, _ADVANCE, _LINE = 14, 8.43, 20
_MARGIN = 18
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_BACKGROUND, _FRAME, _TEXT, _OUTPUT, _GREEN = "#161b22", "#4a525c", "#f0f6fc", "#b1bac4", "#56d364"


def transcript(folder: Path) -> list[tuple[str, bool]]:
    """Runs the commands in `folder`. Returns the lines of the screen, each with whether it was typed."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def output(command: str) -> list[str]:
        run = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        return [line for line in (run.stderr + run.stdout).splitlines() if not line.startswith(_ONCE)]

    output("grouplake example log")
    lines: list[tuple[str, bool]] = []
    for command in COMMANDS:
        lines += [(line, True) for line in f"{_PROMPT}{command}".splitlines()]
        lines += [(line, False) for line in output(command)]
        lines.append(("", False))
    return lines[:-1]


def picture(lines: list[tuple[str, bool]]) -> str:
    """The screen as SVG. `textLength` keeps columns aligned in any monospaced font."""
    width = round(max(len(line) for line, _ in lines) * _ADVANCE) + 2 * _MARGIN
    height = len(lines) * _LINE + 2 * _MARGIN - 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        "<title>A terminal with the commands and their output</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{_BACKGROUND}" stroke="{_FRAME}"/>',
        f'<g font-family="{_FONT}" font-size="{_SIZE}" xml:space="preserve">',
        *(part for number, (line, typed) in enumerate(lines) for part in _line(number, line, typed)),
        "</g>",
        "</svg>",
    ]
    return "\n".join([*parts, ""])


def _line(number: int, line: str, typed: bool) -> Iterator[str]:
    text = line.lstrip(" ")
    column = len(line) - len(text)
    if text.startswith(_PROMPT):
        yield _text(number, column, "$", _GREEN)
        text = text.removeprefix(_PROMPT)
        column += len(_PROMPT)
    if text:
        yield _text(number, column, text, _TEXT if typed else _OUTPUT)


def _text(number: int, column: int, text: str, colour: str) -> str:
    x, y = _MARGIN + column * _ADVANCE, _MARGIN + number * _LINE + _SIZE
    return f'<text x="{x:.1f}" y="{y}" textLength="{len(text) * _ADVANCE:.1f}" fill="{colour}">{escape(text)}</text>'


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="grouplake-terminal-") as folder:
        IMAGE.write_text(picture(transcript(Path(folder))), encoding="utf-8")
