"""Grouplake's tables in Python, at one consistent batch: the public API of the package.

>>> import grouplake
>>> groups = grouplake.open("/data/groups")  # doctest: +SKIP
>>> groups.sql("SELECT group_id, state FROM groups").to_pandas()  # doctest: +SKIP

The names in `__all__` are stable: an incompatible change of one needs a new major version. Everything else of this
distribution, the packages `pipelines` and `coordinator_core` included, may change in any version.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from grouplake.tables import QueryResult, Tables
    from pipelines.group_commits.offset_commits import OffsetCommits
    from pipelines.runtime.errors import GrouplakeError

__all__ = ["GrouplakeError", "OffsetCommits", "QueryResult", "Tables", "commit_offsets", "open", "register"]


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


def commit_offsets(
    query_or_session: "StreamingQuery | SparkSession",
    *,
    group_id: str,
    kafka: "Mapping[str, object]",
    topics: "Collection[str] | None" = None,
) -> "OffsetCommits":
    """Commit the offsets of finished batches of Structured Streaming queries as consumer groups.

    Every tool of Kafka then shows how far a query is. The checkpoint stays the truth: the query never reads these commits, and
    nothing that fails here reaches it. Problems are warnings of the logger `grouplake.commits`, one line each.

    Args:
        query_or_session: a query, or a session for all of its queries, of now and later.
        group_id: the group, which no consumer and no other query may use. `{name}` in it stands for the name of the query; a
            session needs it.
        kafka: options of librdkafka for the cluster, with `bootstrap.servers`.
        topics: topics to commit, for queries that read several clusters; None for all of a query's Kafka sources.

    Returns:
        The commits, with their `states`, until its `stop()`.

    Raises:
        GrouplakeError: confluent-kafka or PySpark is not installed, or an argument is invalid.
    """
    try:
        from pipelines.group_commits.query_listener import commit_query_offsets
    except ModuleNotFoundError as error:
        from pipelines.runtime.errors import UsageError

        raise UsageError(f"commit_offsets needs PySpark, as the query does: no module {error.name}") from error

    return commit_query_offsets(query_or_session, group_id, kafka, topics)


if not TYPE_CHECKING:
    # type checkers know the names above, and must not accept any other
    def __getattr__(name: str) -> Any:
        """Import a class at its first use, so that `import grouplake` takes no time."""
        if name in ("Tables", "QueryResult"):
            import grouplake.tables

            return getattr(grouplake.tables, name)
        if name == "OffsetCommits":
            from pipelines.group_commits.offset_commits import OffsetCommits

            return OffsetCommits
        if name == "GrouplakeError":
            from pipelines.runtime.errors import GrouplakeError

            return GrouplakeError
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
