"""The commands of docs/deploy.md, as far as they run without a machine, an engine or a cluster of their own."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from deployment_tools import DEPLOY
from markdown_pages import ROOT, blocks
from patience import PATIENCE_SECONDS
from systemd_units import COMMAND, FOLDER, TIMERS

PAGE = ROOT / "docs" / "deploy.md"
#: Commands of the installation that change the machine or take minutes; tests/e2e/test_systemd.py and test_wheel.py run them.
_ELSEWHERE = ("python3 -m venv", "make wheel", "/opt/grouplake/bin/pip", "systemd-sysusers", "chgrp")


def commands(word: str) -> list[str]:
    """The commands of the page whose first word is `word`, without their comments."""
    lines = [line for block in blocks(PAGE) if block.language == "sh" for line in block.text.splitlines()]
    return [line.partition(" #")[0].strip() for line in lines if line.split()[0] == word]


def installation() -> list[str]:
    """The commands that install the units."""
    (block,) = (block.text for block in blocks(PAGE) if "/etc/systemd/system/" in block.text)
    return block.splitlines()


def test_the_installation_gives_what_the_units_need(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze in PATH")
    for folder in ("etc/systemd/system", "etc/sysusers.d"):
        (tmp_path / folder).mkdir(parents=True)
    for line in installation():
        if not line.startswith(_ELSEWHERE):
            subprocess.run(
                re.sub(r"(?<= )/etc/", f"{tmp_path}/etc/", line), shell=True, check=True, cwd=ROOT, timeout=PATIENCE_SECONDS
            )
    secrets = tmp_path / "etc" / "grouplake" / "secrets"
    assert {path.name for path in secrets.iterdir()} == {"east", "alerts", "dashboard"}
    assert {oct(path.stat().st_mode)[-3:] for path in (secrets, *secrets.iterdir())} == {"700"}
    installed = tmp_path / "etc" / "systemd" / "system"
    for unit in installed.glob("*.service"):
        # the environment is made by the commands that are not run here
        unit.write_text(unit.read_text().replace(COMMAND, "/bin/true"))
        for file in re.findall(r"^EnvironmentFile=(.+)$", unit.read_text(), re.MULTILINE):
            assert (tmp_path / file.replace("%i", "east").lstrip("/")).exists(), file
    units = sorted(path for path in installed.iterdir() if path.suffix in {".service", ".timer"})
    checked = ["systemd-analyze", "verify", *map(str, units)]
    found = subprocess.run(checked, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (len(units), found.stderr) == (len(list(FOLDER.glob("*.service"))) + len(TIMERS), "")


def test_commands_of_the_installation_that_run_elsewhere_are_still_there() -> None:
    assert all(any(line.startswith(start) for line in installation()) for start in _ELSEWHERE)


def test_units_that_are_started_exist() -> None:
    named = [word for line in commands("systemctl") for word in line.split() if word.startswith("grouplake-")]
    files = {re.sub(r"@east", "@", name) for name in named}
    assert len(files) == 5
    assert {name if "." in name else f"{name}.service" for name in files} == {path.name for path in FOLDER.iterdir()} - {
        "grouplake-run@.service",
        "grouplake-.service.d",
        "grouplake.sysusers",
        "etc",
    }


def test_files_that_commands_name_exist() -> None:
    named = [
        word
        for program in ("docker", "kubectl", "deploy/compose/secrets.sh")
        for line in commands(program)
        for word in line.split()
    ]
    paths = [word for word in named if word.startswith("deploy/")]
    assert len(paths) == 4
    assert [path for path in paths if not (ROOT / path).exists()] == []
    overlays = {path.name for path in (DEPLOY / "kubernetes" / "overlays").iterdir()}
    assert overlays == set(re.findall(r"overlay `([\w-]+)`", PAGE.read_text(encoding="utf-8")))
