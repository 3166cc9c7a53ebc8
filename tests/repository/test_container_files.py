"""Dockerfile and compose file: their formats' own checks, and the command lines in them."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from deployment_tools import COMPOSE, DEPLOY, ROOT, go_files
from patience import PATIENCE_SECONDS

from pipelines.alerts.rules_file import load_rules
from pipelines.cli.parser import parser
from pipelines.runtime.configuration import load_configuration
from tools.release import newest_section

DOCKERFILE = DEPLOY / "container" / "Dockerfile"
COMPOSE_FILE = DEPLOY / "compose" / "compose.yaml"
_PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def composed() -> dict[str, Any]:
    """The compose file."""
    found: dict[str, Any] = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))
    return found


def our_services() -> dict[str, dict[str, Any]]:
    """The services that run our image."""
    return {name: each for name, each in composed()["services"].items() if each["image"].startswith("grouplake:")}


def linted(text: str) -> subprocess.CompletedProcess[str]:
    """Findings of hadolint about a Dockerfile, of every level."""
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [str(hadolint), "--failure-threshold=ignore", "--no-color", "--format=json", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def test_hadolint_finds_nothing() -> None:
    done = linted(DOCKERFILE.read_text(encoding="utf-8"))
    assert (json.loads(done.stdout), done.stderr) == ([], "")


def test_hadolint_finds_a_mistake() -> None:
    text = DOCKERFILE.read_text(encoding="utf-8").replace(" && rm -rf /var/lib/apt/lists/*", "")
    assert "DL3009" in {finding["code"] for finding in json.loads(linted(text).stdout)}


def test_the_image_has_the_locked_versions() -> None:
    locked = dict(_PIN.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    image = dict(_PIN.findall((DEPLOY / "container" / "requirements.lock").read_text(encoding="utf-8")))
    assert len(image) > 40
    assert {name: version for name, version in image.items() if locked.get(name, version) != version} == {}


@pytest.mark.parametrize("extra", ["job", "coordinator", "dashboard", "mcp"])
def test_the_image_has_the_extras_that_the_docs_name(extra: str) -> None:
    assert f"`{extra}`" in (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    image = dict(_PIN.findall((DEPLOY / "container" / "requirements.lock").read_text(encoding="utf-8")))
    named = [found[0] for each in extras[extra] if (found := re.match(r"[A-Za-z0-9-]+", each))]
    assert [name for name in named if name not in image] == []


def test_images_are_of_the_version_that_the_changelog_describes() -> None:
    version = newest_section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))[0]
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix in {".yaml", ".sh"}]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert set(re.findall(r"grouplake:([\w.-]+)", text)) == {version}
    assert set(re.findall(r"newTag: (\S+)", text)) == {version}


@pytest.mark.deployment
def test_the_compose_file_follows_its_schema() -> None:
    schema = json.loads((go_files(*COMPOSE) / "compose-spec.json").read_text(encoding="utf-8"))
    checker = jsonschema.Draft7Validator(schema)
    assert [error.message for error in checker.iter_errors(composed())] == []
    wrong = composed()
    wrong["services"]["job"]["restarts"] = "always"
    assert [error.message for error in checker.iter_errors(wrong)] != []


@pytest.mark.parametrize("name", sorted(our_services()))
def test_services_run_our_commands_without_privileges(name: str) -> None:
    service = our_services()[name]
    assert parser().parse_args(service["command"]).command is not None
    assert (service["read_only"], service["cap_drop"], service["user"]) == (True, ["ALL"], "185:185")
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_files_that_services_mount_exist() -> None:
    compose = composed()
    secrets = {each["file"] for each in compose["secrets"].values()}
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (COMPOSE_FILE.parent / source).exists(), volume
    made = re.findall(r'\$draft/([\w.]+)"', (COMPOSE_FILE.parent / "secrets.sh").read_text(encoding="utf-8"))
    assert secrets <= {f"secrets/{name}" for name in made}


def test_ports_are_of_this_machine_only() -> None:
    for service in composed()["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_script_makes_secrets_that_our_configuration_uses(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl in PATH")
    for name in ("secrets.sh", "dashboard.toml", "alerts.toml"):
        shutil.copy(COMPOSE_FILE.parent / name, tmp_path)
    script = [str(tmp_path / "secrets.sh"), str(Path(sys.executable).with_name("grouplake"))]
    subprocess.run(script, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    secrets = tmp_path / "secrets"
    users = (secrets / "users").read_text().splitlines()
    assert [line.split()[:2] for line in users] == [["prometheus", "all"], ["admin", "all"]]
    assert len((secrets / "prometheus_token").read_text()) > 40
    folder = {"CREDENTIALS_DIRECTORY": str(secrets)}
    dashboard = load_configuration(str(tmp_path / "dashboard.toml"), folder).dashboard
    assert dashboard["credentials_file"] == str(secrets / "users")
    assert load_rules(str(tmp_path / "alerts.toml")).receivers
    again = subprocess.run(script, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert again.returncode == 1
    assert "remove it to make new secrets" in again.stderr
