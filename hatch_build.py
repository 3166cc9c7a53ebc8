"""Writes the git revision into wheels and source archives; pyproject.toml has everything else about the build."""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "pipelines/runtime"


class RevisionHook(BuildHookInterface):
    """Adds the file of the revision. Outside of a checkout the file of the source archive, if any, is in the tree already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, except to an editable install, which has no copies of the modules."""
        root = Path(self.root)
        # run by path: a build environment has none of the dependencies
        known = runpy.run_path(str(root / PACKAGE / "version.py"))
        revision = known["git_revision"](root)
        if revision is None or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name, known["REVISION_FILE"])
        file.write_text(f"{revision}\n", encoding="utf-8")
        build_data["force_include"][str(file)] = f"{PACKAGE}/{file.name}"
