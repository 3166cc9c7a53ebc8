"""Cache of compiled functions (`*_kernels.py`), and their compilation ahead of use.

Numba's index notices a change of the file that defines a function, but no change of functions and constants that it imports from
other files. The name of the folder is therefore a hash of the content of all these files, with the versions of Python and of the
compiler: installations of the same version share the folder, wherever they are (`kernel_locator`).
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pipelines.runtime.cache.folder import cache_root, hold, remove_unused
from pipelines.runtime.cache.kernel_version import kernel_version
from pipelines.runtime.progress import Progress

KIND = "kernels"

_VARIABLE = "NUMBA_CACHE_DIR"
_LOCATOR_VARIABLE, _LOCATOR = "NUMBA_CACHE_LOCATOR_CLASSES", "pipelines.runtime.cache.kernel_locator.KernelLocator"
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
        shared = cache_root() / KIND / kernel_version()
        os.environ[_VARIABLE] = str(shared if _is_writable(shared) else _writable_copy(shared))
    os.environ.setdefault(_LOCATOR_VARIABLE, _LOCATOR)
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
    marker = folder / f"COMPLETE-{kernel_version()}"
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
