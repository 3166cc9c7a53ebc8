"""Version of the compiled functions: a hash of what decides about their code."""

import hashlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import coordinator_core

#: The package with the functions.
CORE = Path(coordinator_core.__file__).parent

_IMPORT = re.compile(r"^from coordinator_core\.([\w.]+) import", re.MULTILINE)
#: The packages of the compiler, each with a module that states its version; reading it is faster than importing it.
_COMPILER = ("numba", "llvmlite")


@cache
def kernel_version() -> str:
    """Return the version of the functions of this installation."""
    return version_of_kernels(CORE)


def version_of_kernels(core: Path) -> str:
    """Return a hash of the kernels in the folder `core`, of the modules that they import, of Python and of the compiler.

    It depends on the content of files and on their places in the folder, but neither on the folder nor on times. The kind of CPU
    is missing because Numba distinguishes it itself.
    """
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {list(_compiler_versions())}".encode())
    kernels = set(core.rglob("*_kernels.py"))
    imported = {core.joinpath(*name.split(".")).with_suffix(".py") for file in kernels for name in _IMPORT.findall(_text(file))}
    for file in sorted(kernels | imported):
        digest.update(f"{file.relative_to(core).as_posix()}\n{_text(file)}".encode())
    return digest.hexdigest()[:16]


def _compiler_versions() -> Iterator[str]:
    for name in _COMPILER:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield _text(Path(spec.origin).with_name("_version.py"))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""
