"""Cache of compiled functions (`*_kernels.py`), and their compilation ahead of use.

Numba's index notices a change of the file that defines a function, but no change of functions and constants that it imports from
other files. The name of the folder is therefore a hash of all these files, so each version of the package has its own folder.
Each installation has one, too: Numba compiles again for a file with another path or time of modification.
"""

import atexit
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import coordinator_core
from pipelines.runtime.cache.folder import cache_root, hold, remove_unused
from pipelines.runtime.progress import Progress

KIND = "kernels"

_VARIABLE = "NUMBA_CACHE_DIR"
_IMPORT = re.compile(r"^from coordinator_core\.([\w.]+) import", re.MULTILINE)
#: Those of a job, those of a log of transactions, and those of topics with data, which only a coordinator has.
_COMPILE = """
from coordinator_core.reduction.transaction_warm_up import load_transaction_kernels
from coordinator_core.service.topics.topic_kernels import load_topic_kernels
from pipelines.source.warm_up import load_kernels
load_kernels()
load_transaction_kernels()
load_topic_kernels()
"""


def use_kernel_cache() -> Path:
    """Make Numba use the cache folder in this process and its children. Call this before Numba is imported.

    `$NUMBA_CACHE_DIR`, if set, takes precedence. Numba refuses a folder that it cannot write: of a read-only one, as in an image,
    it gets a copy, which is removed when this process ends.
    """
    if _VARIABLE not in os.environ:
        shared = cache_root() / KIND / _version()
        os.environ[_VARIABLE] = str(shared if _is_writable(shared) else _writable_copy(shared))
    folder = Path(os.environ[_VARIABLE])
    if folder.parent == cache_root() / KIND:
        hold(folder)
    return folder


def _is_writable(folder: Path) -> bool:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    return existing.is_dir() and os.access(existing, os.W_OK)


def _writable_copy(folder: Path) -> Path:
    copy = Path(tempfile.mkdtemp(prefix="grouplake-kernels-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    if folder.exists():
        shutil.copytree(folder, copy, dirs_exist_ok=True)
    return copy


def compile_kernels(progress: Progress | None = None) -> None:
    """Compile the functions that read logs, unless the cache has them; in a child process."""
    folder = use_kernel_cache()
    marker = folder / f"COMPLETE-{_version()}"
    if marker.exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if progress:
        progress(f"compiling the functions that read the log (half a minute, once; kept in {folder})")
    remove_unused(KIND)
    done = subprocess.run([sys.executable, "-c", _COMPILE], check=False, capture_output=True)
    # an error is not reported here: it recurs where the functions are used
    if done.returncode == 0:
        marker.touch()


def _version() -> str:
    """Hash of the kernels, with their paths and times, and of the modules of the core that they import."""
    root = Path(coordinator_core.__file__).parent
    kernels = set(root.rglob("*_kernels.py"))
    imported = {root.joinpath(*name.split(".")).with_suffix(".py") for file in kernels for name in _IMPORT.findall(_text(file))}
    digest = hashlib.sha256()
    for file in sorted(kernels | imported):
        digest.update(_text(file).encode())
    for file in sorted(kernels):
        # whole seconds, as the layers of an image keep them
        digest.update(f"{file} {int(file.stat().st_mtime)}".encode())
    return digest.hexdigest()[:16]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""
