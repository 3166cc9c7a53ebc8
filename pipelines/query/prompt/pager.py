"""Paging of results that do not fit the terminal, through $PAGER or `less`."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import TextIO

from pipelines.runtime.terminal_text import masked


def show(text: str, out: TextIO) -> None:
    """Write `text` to `out`; if `out` is a terminal and `text` is longer or wider, through the pager.

    A terminal and its pager get no control characters but line ends and tabs.
    """
    command = None
    if out.isatty():
        text = masked(text, "\n\t")
        command = pager(os.environ) if _exceeds(text, shutil.get_terminal_size()) else None
    if command is None:
        out.write(text)
        out.flush()
        return
    out.flush()
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdin is not None
        try:
            process.stdin.write(text)
            process.stdin.close()
        except BrokenPipeError:
            # the reader left the pager before the end
            pass
        while process.poll() is None:
            try:
                process.wait()
            except KeyboardInterrupt:
                # it is meant for the pager, which has received it too
                continue


def pager(environment: Mapping[str, str]) -> list[str] | None:
    """The command of the pager: $PAGER, a command of the shell; `less` without it; None if $PAGER is empty or neither exists.

    `less` does not wrap lines, and ends immediately for a text that fits.
    """
    chosen = environment.get("PAGER")
    if chosen is not None:
        return ["sh", "-c", chosen] if chosen.strip() else None
    found = shutil.which("less")
    return [found, "-FRSX"] if found else None


def _exceeds(text: str, size: os.terminal_size) -> bool:
    lines = text.splitlines()
    return len(lines) >= size.lines or max(map(len, lines), default=0) > size.columns
