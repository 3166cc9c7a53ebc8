"""The units of `deploy/systemd`: systemd's own checks, and their command lines."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from patience import PATIENCE_SECONDS
from systemd_units import FOLDER, SERVICES, TIMERS, copied_units, example_files, settings, started_command

from pipelines.cli.parser import parser
from pipelines.runtime.configuration import load_configuration

#: `systemd-analyze security`: 0 is no exposure, 100 everything.
_EXPOSURE = 25


def analyzed(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A run of systemd-analyze, which needs no running systemd."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze in PATH")
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env={"PATH": "/usr/bin:/bin"}
    )


def verified(folder: Path) -> str:
    """Findings about all units of a folder. Systemd exits with 0 for some of them, but prints every one."""
    units = sorted(path for path in folder.iterdir() if path.suffix in {".service", ".timer"})
    return analyzed("verify", *units).stderr


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    assert verified(copied_units(tmp_path / "units")) == ""


def test_the_check_finds_a_mistake(tmp_path: Path) -> None:
    folder = copied_units(tmp_path / "units")
    timer = folder / "grouplake-run@.timer"
    timer.write_text(timer.read_text().replace("OnUnitInactiveSec=5min", "OnUnitInactiveSec=5minx"))
    assert "Failed to parse timer value" in verified(folder)


@pytest.mark.parametrize("unit", SERVICES)
def test_services_are_hardened(unit: str) -> None:
    done = analyzed("security", "--offline=true", f"--threshold={_EXPOSURE}", FOLDER / unit)
    assert done.returncode == 0, done.stdout[-300:]


def test_the_hardening_is_what_keeps_the_exposure_low(tmp_path: Path) -> None:
    folder = copied_units(tmp_path / "units")
    shutil.rmtree(folder / "grouplake-.service.d")
    done = analyzed("security", "--offline=true", f"--threshold={_EXPOSURE}", folder / SERVICES[0])
    assert done.returncode == 1, done.stdout[-300:]


@pytest.mark.parametrize("unit", TIMERS)
def test_calendars_are_valid(unit: str) -> None:
    calendar = settings(unit).get("OnCalendar")
    if calendar is not None:
        assert analyzed("calendar", calendar).returncode == 0


@pytest.mark.parametrize("unit", SERVICES)
def test_the_command_line_is_one_of_ours(unit: str) -> None:
    options = parser().parse_args(started_command(unit))
    assert unit.startswith("grouplake-")
    assert options.command is not None


@pytest.mark.parametrize("name", sorted(name for name in example_files() if name.endswith(".toml")))
def test_examples_load_with_the_credentials_that_the_units_load(name: str, tmp_path: Path) -> None:
    text = example_files()[name]
    prefixes = {settings(unit)["LoadCredential"].partition(":")[0] for unit in SERVICES if "LoadCredential" in settings(unit)}
    for credential in re.findall(r'"credential:([^"]+)"', text):
        assert credential.partition("_")[0] in prefixes
        (tmp_path / credential).write_text("hidden\n")
    load_configuration(str(FOLDER / "etc" / name), {"CREDENTIALS_DIRECTORY": str(tmp_path)})


def test_no_unit_has_a_secret() -> None:
    for path in FOLDER.rglob("*"):
        if path.is_file():
            assert not re.search(r"(?i)(password|secret|token) *= *\"?(?!credential:)[a-z0-9]", path.read_text()), path
