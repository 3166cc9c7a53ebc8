"""The location of compiled functions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import coordinator_core
from pipelines.runtime.cache import kernels

#: Numba looks for a folder when a function is defined, and compiles it when it is called.
_DEFINED = """
from pipelines.runtime.cache.kernels import use_kernel_cache
use_kernel_cache()
from coordinator_core.codec.byte_kernels import hash_bytes
"""
_COMPILED = f"""{_DEFINED}
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


def run(code: str, cache: Path) -> str:
    """Output of Python code with this cache folder."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={**environment, "GROUPLAKE_CACHE": str(cache)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with one compiled function."""
    cache = tmp_path_factory.mktemp("cache")
    run(_COMPILED, cache)
    return cache


def test_compiled_functions_are_kept_in_the_cache(compiled: Path) -> None:
    (folder,) = (each for each in (compiled / "kernels").iterdir() if each.is_dir())
    assert list(folder.rglob("byte_kernels.hash_bytes-*.nbc"))


def test_of_a_folder_that_cannot_be_written_a_copy_is_used(compiled: Path) -> None:
    """As in an image with a read-only root. Numba refuses a folder that it cannot write."""
    # tests may run as the superuser, who may write everywhere
    read_only = "import os; os.access = lambda *_: False\n"
    shown = "from pathlib import Path; found = Path(os.environ['NUMBA_CACHE_DIR'])\n"
    print_files = "print(found, len(list(found.rglob('byte_kernels.hash_bytes-*.nbc'))))\n"
    before = "from pipelines.runtime.cache.kernels import use_kernel_cache; use_kernel_cache()\n"
    folder, files = run(read_only + before + "import os\n" + shown + print_files, compiled).split()
    assert (files, Path(folder).is_relative_to(compiled), Path(folder).exists()) == ("1", False, False)


def test_a_cache_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run(_DEFINED, tmp_path / "file")
