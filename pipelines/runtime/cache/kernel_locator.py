"""Place of compiled functions in Numba's cache folder: by the module in the package, so that every installation has the same."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import CacheImpl

from pipelines.runtime.cache.kernel_version import CORE, kernel_version

_VARIABLE = "NUMBA_CACHE_DIR"


class KernelLocator:
    """A locator for `$NUMBA_CACHE_LOCATOR_CLASSES`, which a Numba that does not know the variable ignores.

    Numba's own name a folder by the path of the source. Functions of other packages remain with them.
    """

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        #: Numba names it in warnings.
        self._py_file = str(file)
        self._line = function.__code__.co_firstlineno
        self._folder = Path(os.environ[_VARIABLE]) / file.relative_to(CORE).with_suffix("")

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        """Return the locator of a function; None if Numba has none, either."""
        path = Path(file)
        if os.environ.get(_VARIABLE) and path.is_relative_to(CORE):
            return cls(function, path)
        others: Any = CacheImpl._locator_classes
        found = (locator.from_function(function, file) for locator in others)
        return next((locator for locator in found if locator is not None), None)

    def ensure_cache_path(self) -> None:
        """Create the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return os.fspath(self._folder)

    def get_source_stamp(self) -> str:
        """Return what an entry must have been compiled from."""
        return kernel_version()

    def get_disambiguator(self) -> str:
        """Return what distinguishes functions of one name."""
        return str(self._line)
