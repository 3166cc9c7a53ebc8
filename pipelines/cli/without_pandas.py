"""Arrow looks for pandas whenever it makes an array, and importing pandas takes longer than most queries."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name="pandas")


def without_pandas() -> None:
    """Hides pandas from everything in this process that could do with it and does not need it."""
    sys.meta_path.insert(0, _NoPandas())
