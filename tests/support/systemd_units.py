"""The files of `deploy/systemd` and the parts of them that tests read."""

import configparser
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))
TIMERS = sorted(path.name for path in FOLDER.glob("*.timer"))
#: Path of the command in the units.
COMMAND = "/opt/grouplake/bin/grouplake"


def unit_files() -> dict[str, str]:
    """Every unit and drop-in, by its path below the folder of units."""
    return {
        str(path.relative_to(FOLDER)): path.read_text(encoding="utf-8")
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in {".service", ".timer", ".conf"}
    }


def example_files() -> dict[str, str]:
    """The examples of files in /etc/grouplake, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((FOLDER / "etc").iterdir())}


def settings(unit: str) -> Mapping[str, str]:
    """The section [Service] or [Timer]; of a key that occurs twice, the last value."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # keys of units are case-sensitive
    parser.read_string((FOLDER / unit).read_text(encoding="utf-8"))
    return parser["Service" if unit.endswith(".service") else "Timer"]


def started_command(unit: str, instance: str = "east") -> list[str]:
    """The words of ExecStart after the program, with the values that systemd would put in."""
    line = settings(unit)["ExecStart"]
    for specifier, value in {"%i": instance, "%S": "/var/lib", "%C": "/var/cache"}.items():
        line = line.replace(specifier, value)
    program, *words = shlex.split(line)
    assert program == COMMAND
    variables = _variables(unit, instance)
    found = []
    for word in words:
        if word.startswith("$") and not word.startswith("${"):
            found += variables[word.removeprefix("$")].split()
        elif word.startswith("${"):
            found.append(variables[word.strip("${}")])
        else:
            found.append(word)
    return found


def _variables(unit: str, instance: str) -> dict[str, str]:
    file = settings(unit).get("EnvironmentFile")
    if file is None:
        return {}
    name = Path(file.replace("%i", instance)).name
    lines = example_files()[name].splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def copied_units(folder: Path) -> Path:
    """The units in a folder of their own, with the command of this environment, since /opt/grouplake is not on this machine."""
    shutil.copytree(FOLDER, folder)
    command = os.path.join(os.path.dirname(sys.executable), "grouplake")
    for path in folder.rglob("*.service"):
        path.write_text(path.read_text(encoding="utf-8").replace(COMMAND, command), encoding="utf-8")
    return folder
