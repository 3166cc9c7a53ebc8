"""Every step of the Dockerfile in a root of its own, and the image in use as docs/deploy.md describes it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployment_tools import DEPLOY, ROOT
from image_build import Stage, build, new_base

pytestmark = [pytest.mark.slow, pytest.mark.debian, pytest.mark.timeout(3_600)]

DOCKERFILE = DEPLOY / "container" / "Dockerfile"


def copied_context(folder: Path) -> Path:
    """What `Dockerfile.dockerignore` leaves of the checkout."""
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert {line for line in lines if not line.startswith(("#", "!"))} == {"*", "**/__pycache__"}
    for name in kept:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    return folder


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("image")
    yield build(DOCKERFILE, copied_context(folder / "context"), new_base(folder / "base"), folder)
    shutil.rmtree(folder)


def contained(image: Stage, script: str) -> str:
    """Output of a shell script in a container of the image: user 185, read-only root, no network."""
    done = image.run(["/bin/sh", "-c", script], private=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def test_a_run_needs_no_network_and_no_writable_root(image: Stage) -> None:
    """Nor does it need an address for the name of the machine."""
    (entry,) = image.entrypoint
    output = contained(
        image,
        f"{entry} example /tmp/log && {entry} run --source segments:/tmp/log --tables /data/tables"
        f" && {entry} check --tables /data/tables && {entry} sql --tables /data/tables 'SELECT count(*) AS n FROM groups'",
    )
    assert "batch 0: 190 records read" in output
    assert "compiling" not in output
    assert "downloading" not in output
    assert "recording" not in output


def test_the_user_owns_nothing_but_the_cache_and_the_data(image: Stage) -> None:
    assert contained(image, "id --user; touch /opt/grouplake/new 2>/dev/null || echo read-only").split() == ["185", "read-only"]
    owned = "find / -xdev -user 185 -not -path '/opt/grouplake/cache/*' -not -path '/proc/*' 2>/dev/null || true"
    assert sorted(contained(image, owned).split()) == ["/opt/grouplake/cache", "/run/secrets"]


def test_the_command_reports_its_version(image: Stage) -> None:
    assert contained(image, f"{image.entrypoint[0]} --version").startswith("grouplake 0.1.0")
