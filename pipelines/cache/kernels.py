"""Compiled functions (`*_kernels.py`): where Numba keeps them, and compiling them before anything waits for one.

Numba's own index notices a change of the file that holds a function, but not one of the functions and constants that it uses from
other files. The folder's name is therefore a hash of all of these files: another version of the package has a folder of its own.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import coordinator_core
from pipelines.cache.folder import cache_root, hold, remove_unused
from pipelines.progress import Progress

KIND = "kernels"

_VARIABLE = "NUMBA_CACHE_DIR"
_IMPORT = re.compile(r"^from coordinator_core\.([\w.]+) import", re.MULTILINE)
_COMPILE = "from pipelines.source.warm_up import load_kernels; load_kernels()"


def use_kernel_cache() -> Path:
    """Has Numba keep what it compiles in the cache folder, in this process and its children. Call it before Numba is imported.

    `$NUMBA_CACHE_DIR`, if set, wins. A folder that cannot be written is no error: Numba then writes beside the code, or nowhere.
    """
    folder = Path(os.environ.setdefault(_VARIABLE, str(cache_root() / KIND / _version())))
    if folder.parent == cache_root() / KIND:
        hold(folder)
    return folder


def compile_kernels(progress: Progress | None = None) -> None:
    """Compiles what reading a log needs, unless that is in the cache; in another process, so that this one goes on meanwhile."""
    folder = use_kernel_cache()
    marker = folder / f"COMPLETE-{_version()}"
    if marker.exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if not os.access(folder, os.W_OK):
        return
    if progress:
        progress(f"compiling the functions that read the log (half a minute, once; kept in {folder})")
    remove_unused(KIND)
    done = subprocess.run([sys.executable, "-c", _COMPILE], check=False, capture_output=True)
    # whatever went wrong is reported where the functions are used
    if done.returncode == 0:
        marker.touch()


def _version() -> str:
    """Hash of the kernels and of the modules that they import."""
    root = Path(coordinator_core.__file__).parent
    kernels = set(root.rglob("*_kernels.py"))
    imported = {root.joinpath(*name.split(".")).with_suffix(".py") for file in kernels for name in _IMPORT.findall(_text(file))}
    digest = hashlib.sha256()
    for file in sorted(kernels | imported):
        digest.update(_text(file).encode())
    return digest.hexdigest()[:16]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""
