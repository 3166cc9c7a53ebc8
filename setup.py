"""Writes the git revision into wheels and source archives; pyproject.toml has everything else about the build."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
PACKAGE = Path("pipelines/runtime")
# run by path: a build environment has none of the dependencies
VERSION = runpy.run_path(str(ROOT / PACKAGE / "version.py"))


def write_revision(root: Path) -> None:
    """Write the revision into the package under `root`. Outside of a checkout, keep the file of the source archive, if any."""
    revision = VERSION["git_revision"](ROOT)
    if revision:
        (root / PACKAGE / VERSION["REVISION_FILE"]).write_text(f"{revision}\n", encoding="utf-8")


class BuildWithRevision(build_py):
    """Build of a wheel's modules. An editable install has no copies of them, so it has no file for the revision."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_revision(Path(self.build_lib))


class SourceWithRevision(sdist):
    """Build of the source archive, from which a wheel can be built without git."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_revision(Path(base_dir))


setup(cmdclass={"build_py": BuildWithRevision, "sdist": SourceWithRevision})
