"""Every step of the Dockerfile in a root of its own, and the image in use as docs/deploy.md describes it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployment_tools import DEPLOY, ROOT
from image_build import Stage, build, new_base
from wheel_environments import built_distributions

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(3_600)]

DOCKERFILE = DEPLOY / "container" / "Dockerfile"


def copied_context(folder: Path) -> Path:
    """What `Dockerfile.dockerignore` leaves of the checkout after `make wheel`."""
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert {line for line in lines if not line.startswith(("#", "!"))} == {"*"}
    *files, wheel = kept
    assert wheel == "dist/grouplake-*.whl"
    for name in files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    built_distributions(folder / "dist").archive.unlink()
    return folder


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("image")
    yield build(DOCKERFILE, copied_context(folder / "context"), new_base(folder / "base"), folder)
    shutil.rmtree(folder)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A folder of the user of the image."""
    os.chown(tmp_path, 185, 185)
    return tmp_path


def contained(image: Stage, volume: Path, *command: str) -> str:
    """Output of a command in a container."""
    done = image.run(command, volume)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def test_a_run_needs_no_network_and_no_writable_root(image: Stage, volume: Path) -> None:
    """Nor does it need an address for the name of the machine."""

    def grouplake(*arguments: str) -> list[str]:
        return contained(image, volume, *image.entrypoint, *arguments).splitlines()

    assert grouplake("example", "/data/log") == ["segments:/data/log"]
    lines = grouplake("run", "--source", "segments:/data/log", "--tables", "/data/tables")
    # nothing is downloaded, compiled or recorded
    assert [line.partition(":")[0] for line in lines] == ["starting Spark", "batch 0", "batch 1"]
    assert grouplake("check", "--tables", "/data/tables")[-1].endswith("rules hold")
    assert grouplake("--version")[0].startswith("grouplake ")


def test_the_user_owns_nothing_but_the_cache_and_the_data(image: Stage, volume: Path) -> None:
    script = "id --user; touch /opt/grouplake/new 2>/dev/null || echo read-only"
    assert contained(image, volume, "/bin/sh", "-c", script).split() == ["185", "read-only"]
    owned = "find / -xdev -user 185 -not -path '/opt/grouplake/cache/*' -not -path '/proc/*' 2>/dev/null || true"
    assert sorted(contained(image, volume, "/bin/sh", "-c", owned).split()) == ["/data", "/opt/grouplake/cache", "/run/secrets"]
