"""Import hook that hides pandas: Arrow imports it when it makes an array, which takes longer than most queries."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden in this process", name="pandas")


def without_pandas() -> None:
    """Make every later import of pandas in this process fail, for libraries in which pandas is optional."""
    sys.meta_path.insert(0, _NoPandas())
