"""The consoles in README and docs show the output that the commands print.

Commands are the lines that begin with `$ ` in ```console blocks, continued by lines that begin with `> `. The lines below a
command must appear in its output, in that order; `…` stands for any text. All pages share one shell, README first, and with it
the variables that README sets.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pytest
from patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The prompt of a shell for a command that is not complete.
_CONTINUED = "> "
_END = "--end-of-command--"


@dataclass(frozen=True)
class Command:
    """A command as a page shows it, with the lines under it."""

    text: str
    shown: tuple[str, ...]


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *rest = part.splitlines()
            continued = list(takewhile(lambda line: line.startswith(_CONTINUED), rest))
            text = "\n".join([first, *(line.removeprefix(_CONTINUED) for line in continued)])
            shown = rest[len(continued) :]
            if not text.startswith("make "):
                found.append(Command(text, tuple(line for line in shown if line.strip())))
    return found


PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if commands(page))]


class Shell:
    """One bash for all commands, so that variables persist."""

    def __init__(self, temporary: Path) -> None:
        environment = {**os.environ, "TMPDIR": str(temporary), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self._process = subprocess.Popen(
            ["bash"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Exit code and output, standard error included."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f'{{ {command}\n}} < /dev/null\nprintf "\\n%s %s\\n" {_END} $?\n')
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(_END):
                return int(line.split()[1]), "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell ended in {command!r}: {''.join(lines)}")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("shell"))
    yield shell
    shell.close()


def missing(shown: tuple[str, ...], output: str) -> list[str]:
    """The lines of `shown` that `output` lacks, or has only before the line found last."""
    rest = [" ".join(line.split()) for line in output.splitlines()]
    absent = []
    for line in shown:
        pattern = ".*".join(re.escape(part) for part in " ".join(line.split()).split("…"))
        found = next((number for number, text in enumerate(rest) if re.fullmatch(pattern, text)), None)
        if found is None:
            absent.append(line)
        else:
            rest = rest[found + 1 :]
    return absent


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_shows(page: Path, shell: Shell) -> None:
    shown = commands(page)
    assert shown
    for command in shown:
        code, output = shell.run(command.text)
        assert code == 0, f"{command.text}\n{output}"
        assert missing(command.shown, output) == [], f"{command.text}\n{output}"
