"""The commands of .github/workflows/release.yml that need no service, in a clone with a tag; and what a release refuses."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from checked_commands import checked, with_variables
from deployment_tools import ROOT
from patience import LIMIT_SECONDS

from tools import release
from tools.release import ReleaseError

WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
CHANGELOG = "# Changelog\n\n## 1.2.3 (2026-03-01)\n\n- New.\n\n## 1.2.2 (2026-02-01)\n\n- Old.\n"
VERSION = "0.1.0"


def commands(job: str) -> list[str]:
    """The commands of a job, in their order."""
    return [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone whose newest commit has a tag and its section in CHANGELOG.md."""
    folder = tmp_path_factory.mktemp("release") / "clone"
    checked("git", "clone", "--quiet", "--no-tags", ROOT, folder)
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(re.sub(r"^## .*", f"## {VERSION} (2026-03-01)", changelog.read_text(), count=1, flags=re.MULTILINE))
    git = ("git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    checked(*git, "commit", "--quiet", "--all", "--message", f"Release {VERSION}")
    checked(*git, "tag", f"v{VERSION}")
    return folder


@pytest.fixture(scope="module")
def dist(clone: Path) -> Path:
    """What the first job makes."""
    (command,) = commands("files")
    ready = clone.parent / "ready"
    ready.touch()
    # the environment of this run instead of a new one
    here = f"READY={ready} BIN={Path(sys.executable).parent}"
    run(command.replace("make ", f"make {here} "), clone)
    return clone / "dist"


def run(command: str, folder: Path) -> str:
    """Output of a command of the workflow, in its shell."""
    variables = {name: value for name, value in with_variables().items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    variables |= {"GITHUB_REF_NAME": f"v{VERSION}", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.deployment
def test_files_of_a_release(dist: Path) -> None:
    wheel, archive = f"grouplake-{VERSION}-py3-none-any.whl", f"grouplake-{VERSION}.tar.gz"
    assert {path.name for path in dist.iterdir()} == {wheel, archive, release.MATERIALS, release.NOTES, release.CHECKSUMS}
    packages = {each["name"] for each in json.loads((dist / release.MATERIALS).read_text())["components"]}
    assert {"pyspark", "deltalake", "fastapi", "uvloop"} <= packages
    assert (dist / release.NOTES).read_text().startswith("The first version.")


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.spark
def test_the_release_is_installed_and_used(dist: Path, tmp_path: Path) -> None:
    shutil.copytree(dist, tmp_path / "dist")
    printed = "".join(run(command, tmp_path) for command in commands("install"))
    assert f"grouplake-{VERSION}-py3-none-any.whl: OK" in printed
    assert re.search(rf"^grouplake {VERSION} \(git [0-9a-f]+\)$", printed, re.MULTILINE)
    assert "rules hold" in printed


def test_jobs_that_need_a_service_are_not_run_here() -> None:
    assert set(WORKFLOW["jobs"]) == {"files", "site", "install", "image", "publish"}
    # tests/repository/test_docs_site.py builds it
    assert commands("site") == ["make site"]
    programs = {command.split()[0] for job in ("image", "publish") for command in commands(job)}
    assert programs == {"python3", "docker", "gh"}


def test_a_tag_of_the_build_and_of_the_changelog() -> None:
    release.expect_tag("v1.2.3", "1.2.3", CHANGELOG)
    assert release.newest_section(CHANGELOG) == ("1.2.3", "2026-03-01", "- New.")


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "reason"),
    [
        ("v1.2.4", "1.2.3", CHANGELOG, "the tag v1.2.4 is not that of the build, v1.2.3"),
        ("v1.2.3", "1.2.4.dev1+g0123456", CHANGELOG, "is the tag on this commit"),
        ("v1.2.4", "1.2.4", CHANGELOG, r"begins with 1\.2\.3 \(2026-03-01\): it must describe 1\.2\.4"),
        ("v1.2.3", "1.2.3", CHANGELOG.replace("2026-03-01", "unreleased"), r"begins with 1\.2\.3 \(unreleased\)"),
        ("v1.2.3", "1.2.3", "# Changelog\n", "has no section"),
    ],
)
def test_a_tag_that_does_not_fit(tag: str, version: str, changelog: str, reason: str) -> None:
    with pytest.raises(ReleaseError, match=reason):
        release.expect_tag(tag, version, changelog)


def test_two_builds_that_differ(tmp_path: Path) -> None:
    for name, text in (("first", "a"), ("second", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.whl").write_text(text)
    release.expect_same(tmp_path / "first", tmp_path / "first")
    with pytest.raises(ReleaseError, match=r"two builds of one commit differ: .*'x\.whl'"):
        release.expect_same(tmp_path / "first", tmp_path / "second")
