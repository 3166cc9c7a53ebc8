"""The location of compiled functions."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.runtime.cache.kernel_version import CORE, kernel_version, version_of_kernels

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
#: Prints a hash, and how many functions came from the cache.
_COUNTED = f"""{_COMPILED}
print(hash_bytes(np.zeros(4, np.uint8), 0, 4), sum(hash_bytes.stats.cache_hits.values()))
"""


def installation(folder: Path) -> Path:
    """A copy of the package with the functions; its files have other times. Returns its folder."""
    tree = folder / "coordinator_core"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CORE, tree, ignore=ignored, copy_function=shutil.copyfile)
    return tree


def add(file: Path, text: str) -> None:
    file.write_text(f"{file.read_text(encoding='utf-8')}\n{text}\n", encoding="utf-8")


def test_another_constant_that_a_kernel_uses_is_another_version(tmp_path: Path) -> None:
    tree = installation(tmp_path)
    assert version_of_kernels(tree) == kernel_version()
    add(tree / "service" / "settings.py", "# no kernel uses it")
    assert version_of_kernels(tree) == kernel_version()
    add(tree / "log" / "reader.py", "_ANOTHER = 1")
    imported = version_of_kernels(tree)
    assert imported != kernel_version()
    add(tree / "log" / "batch_kernels.py", "_ANOTHER = 1")
    assert version_of_kernels(tree) not in (imported, kernel_version())


def test_another_installation_uses_the_compiled_functions_unless_its_source_differs(tmp_path: Path) -> None:
    """Numba alone would not: it finds functions by the path of their file, and does not know the constants that they use."""
    same, other = installation(tmp_path / "same").parent, installation(tmp_path / "other")
    kernels = other / "codec" / "byte_kernels.py"
    kernels.write_text(re.sub(r"(?m)^_SEED = .*", "_SEED = np.uint64(1)", kernels.read_text(encoding="utf-8")), encoding="utf-8")
    # one folder for all, in the place of one for each version
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "folder")}
    found = [run(_COUNTED, tmp_path, path, **folder).split() for path in ("", str(same), str(other.parent))]
    (first, compiled), (second, loaded), (third, compiled_again) = found
    assert (compiled, loaded, compiled_again) == ("0", "1", "0")
    assert second == first
    assert third != first


def run(code: str, cache: Path, before: str = "", **variables: str) -> str:
    """Output of Python code with this cache folder, more variables, and a folder before those of this process's modules."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CACHE_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=cache if cache.is_dir() else None,
        env={**environment, "GROUPLAKE_CACHE": str(cache), "PYTHONPATH": os.pathsep.join([before, *sys.path]), **variables},
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
