"""The files, the notes and the image of a release: `make release`, `make image`, and the steps of .github/workflows/release.yml.

`files DIR` writes the wheel, the source archive, a bill of materials, the notes and checksums. With `--tag v1.2.3` it fails
unless the build has this version and CHANGELOG.md describes it. `image DIR` builds the container image from the wheel in DIR.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
CHECKSUMS = "SHA256SUMS"
NOTES = "NOTES.md"
#: The packages of the image, each with its hashes, as CycloneDX.
MATERIALS = "grouplake.cdx.json"
TWINE = "twine==7.0.0"
CYCLONEDX = "cyclonedx-bom==7.5.0"
_SECTION = re.compile(r"^## (\S+) \((.+?)\)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_UNRELEASED = "unreleased"


class ReleaseError(Exception):
    """A release that must not be published, with the reason."""


def newest_section(changelog: str) -> tuple[str, str, str]:
    """Version, date and text of the first section of CHANGELOG.md."""
    found = _SECTION.search(changelog)
    if found is None:
        raise ReleaseError("CHANGELOG.md has no section `## VERSION (DATE)`")
    return found[1], found[2], found[3].strip()


def version_of(wheel: Path) -> str:
    """The version in the name of a wheel."""
    return wheel.name.split("-")[1]


def expect_tag(tag: str, version: str, changelog: str) -> None:
    """Raise ReleaseError unless `tag` names the version of the build, which CHANGELOG.md describes with a date."""
    described, date, _ = newest_section(changelog)
    if tag != f"v{version}":
        raise ReleaseError(f"the tag {tag} is not that of the build, v{version}: is the tag on this commit, and the tree clean?")
    if described != version or date == _UNRELEASED:
        raise ReleaseError(f"CHANGELOG.md begins with {described} ({date}): it must describe {version}, with its date")


def build(folder: Path) -> None:
    """Build the source archive and, from it, the wheel."""
    _run(UV, "build", "--quiet", "--python", sys.executable, "--out-dir", folder, ROOT)
    # of uv
    (folder / ".gitignore").unlink(missing_ok=True)


def expect_same(first: Path, second: Path) -> None:
    """Raise ReleaseError unless two folders have the same files, byte by byte."""
    found, again = ({path.name: _digest(path) for path in folder.iterdir()} for folder in (first, second))
    if found != again:
        raise ReleaseError(f"two builds of one commit differ: {sorted(found.items() ^ again.items())}")


def write_files(folder: Path, tag: str | None) -> None:
    """Write the files of the release into `folder`, which is emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    build(folder)
    with tempfile.TemporaryDirectory() as again:
        build(Path(again))
        expect_same(folder, Path(again))
    (wheel,) = folder.glob("*.whl")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if tag is not None:
        expect_tag(tag, version_of(wheel), changelog)
    _tool(TWINE, "twine", "check", "--strict", *folder.iterdir())
    materials = ("--output-reproducible", "--pyproject", ROOT / "pyproject.toml", "--output-file", folder / MATERIALS)
    _tool(CYCLONEDX, "cyclonedx-py", "requirements", *materials, ROOT / "deploy" / "container" / "requirements.lock")
    (folder / NOTES).write_text(newest_section(changelog)[2] + "\n", encoding="utf-8")
    names = sorted(path.name for path in folder.iterdir())
    (folder / CHECKSUMS).write_text("".join(f"{_digest(folder / name)}  {name}\n" for name in names), encoding="utf-8")
    print(*sorted(path.name for path in folder.iterdir()), sep="\n")


def build_image(folder: Path) -> None:
    """Build the image with Docker from the wheel in `folder`, a folder `dist` of this tree."""
    (wheel,) = folder.glob("*.whl")
    tag = newest_section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))[0]
    revision = _run("git", "-C", ROOT, "rev-parse", "HEAD").strip()
    labels = ("--build-arg", f"VERSION={version_of(wheel)}", "--build-arg", f"REVISION={revision}")
    subprocess.run(
        ["docker", "build", "--file", "deploy/container/Dockerfile", "--tag", f"grouplake:{tag}", *labels, "."],
        cwd=ROOT,
        check=True,
    )


def _tool(requirement: str, *command: str | Path) -> None:
    _run(UV, "tool", "run", "--quiet", "--python", sys.executable, "--from", requirement, *command)


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"`{' '.join(map(str, command))}` ended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(arguments: list[str]) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(description="Build what a release has.")
    parser.add_argument("command", choices=("files", "image"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", help="the tag that the release is made from")
    given = parser.parse_args(arguments)
    commands: dict[str, Callable[[], None]] = {
        "files": lambda: write_files(given.folder, given.tag),
        "image": lambda: build_image(given.folder),
    }
    try:
        commands[given.command]()
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
