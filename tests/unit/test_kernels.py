"""The location of compiled functions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import coordinator_core
from pipelines.cache import kernels

_COMPILED = """
from pipelines.cache.kernels import use_kernel_cache
use_kernel_cache()
from coordinator_core.codec.byte_kernels import hash_bytes
import numpy as np
hash_bytes(np.zeros(4, np.uint8), 0, 4)
"""


def test_another_constant_that_a_kernel_uses_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "coordinator_core"
    shutil.copytree(Path(coordinator_core.__file__).parent, tree, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(coordinator_core, "__file__", str(tree / "__init__.py"))
    first = kernels._version()
    (tree / "service" / "process.py").write_text("# no kernel uses it")
    assert kernels._version() == first
    reader = tree / "log" / "reader.py"
    reader.write_text(reader.read_text() + "\n_ANOTHER = 1\n")
    assert kernels._version() != first


def test_compiled_functions_are_kept_in_the_cache_and_children_find_them(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    subprocess.run([sys.executable, "-c", _COMPILED], check=True, env={**environment, "GROUPLAKE_CACHE": str(tmp_path)})
    (folder,) = (each for each in (tmp_path / "kernels").iterdir() if each.is_dir())
    assert list(folder.rglob("byte_kernels.hash_bytes-*.nbc"))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    code = "from pipelines.cache.kernels import compile_kernels; compile_kernels(print)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**environment, "GROUPLAKE_CACHE": str(tmp_path / "file")},
    )
    assert done.stdout + done.stderr == ""
