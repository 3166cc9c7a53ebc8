"""Import hook that hides pandas: Arrow imports it when it makes an array, which takes longer than most queries."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden in this process", name="pandas")


_HIDDEN = _NoPandas()


def hide_pandas() -> None:
    """Make every later import of pandas in this process fail, for libraries in which pandas is optional."""
    if _HIDDEN not in sys.meta_path:
        sys.meta_path.insert(0, _HIDDEN)


def show_pandas() -> None:
    """Let this process import pandas again, before it starts Spark."""
    if _HIDDEN in sys.meta_path:
        sys.meta_path.remove(_HIDDEN)
        import pyarrow as pa

        # Arrow looks for pandas once, and again only when it converts to it
        with suppress(ImportError):
            pa.table({}).to_pandas()
