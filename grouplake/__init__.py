"""Grouplake's tables in Python, at one consistent batch: the public API of the package.

>>> import grouplake
>>> groups = grouplake.open("/data/groups")  # doctest: +SKIP
>>> groups.sql("SELECT group_id, state FROM groups").to_pandas()  # doctest: +SKIP

The names in `__all__` are stable: an incompatible change of one needs a new major version. Everything else of this
distribution, the packages `pipelines` and `coordinator_core` included, may change in any version.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import SparkSession

    from grouplake.tables import QueryResult, Tables
    from pipelines.runtime.errors import GrouplakeError

__all__ = ["GrouplakeError", "QueryResult", "Tables", "open", "register"]


def open(tables: "str | PathLike[str]", as_of: "int | str | datetime | None" = None) -> "Tables":
    """Open the tables of a folder at one batch, without Spark.

    The result shows the same batch as long as it is used, while a job writes further ones. It holds no lock and no open
    file, and needs no `close`.

    Args:
        tables: the folder that `grouplake run` writes, or its object-store URI.
        as_of: a batch id, a time (UTC without a zone) or its ISO 8601 text; None for the last complete batch.

    Raises:
        GrouplakeError: no tables in this folder, or no such batch.
    """
    from grouplake.tables import Tables

    return Tables.open(tables, as_of)


def register(
    spark: "SparkSession", tables: "str | PathLike[str]", as_of: "int | str | datetime | None" = None, prefix: str = ""
) -> Sequence[str]:
    """Make the tables and views temporary views of a Spark session, all at one batch.

    The session must have Delta Lake configured, and reach the folder by the same path. A later call replaces the temporary
    views of an earlier one with the same prefix; queries and DataFrames made before the call keep their batch.

    Args:
        spark: the session.
        tables: the folder that `grouplake run` writes, or its object-store URI (`s3a://…`).
        as_of: a batch id, a time (UTC without a zone) or its ISO 8601 text; None for the last complete batch.
        prefix: begins the name of every temporary view, such as `east_`.

    Returns:
        The names of the temporary views.

    Raises:
        GrouplakeError: no tables in this folder, no such batch, an invalid prefix, or Spark cannot read Delta tables.
    """
    from grouplake.spark import register_tables

    return register_tables(spark, tables, as_of, prefix)


if not TYPE_CHECKING:
    # type checkers know the names above, and must not accept any other
    def __getattr__(name: str) -> Any:
        """Import a class at its first use, so that `import grouplake` takes no time."""
        if name in ("Tables", "QueryResult"):
            import grouplake.tables

            return getattr(grouplake.tables, name)
        if name == "GrouplakeError":
            from pipelines.runtime.errors import GrouplakeError

            return GrouplakeError
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
