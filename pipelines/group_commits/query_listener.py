"""A `StreamingQueryListener` of a session or of one query; the only module here that imports PySpark."""

from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from pipelines.group_commits.kafka_group import KafkaGroup
from pipelines.group_commits.offset_commits import NAME, OffsetCommits
from pipelines.runtime.errors import UsageError


def commit_query_offsets(
    query_or_session: StreamingQuery | SparkSession,
    group_id: str,
    kafka: Mapping[str, object],
    topics: Collection[str] | None,
) -> OffsetCommits:
    """Commit the offsets of queries: see `grouplake.commit_offsets`."""
    _check_arguments(group_id, kafka, topics)
    # both sessions of Spark, the classic one and that of Spark Connect, have `streams`, and no query has
    session: Any = query_or_session if hasattr(query_or_session, "streams") else None
    query: Any = query_or_session if session is None else None
    if query is None and NAME not in group_id:
        raise UsageError(f"group id {group_id!r} of a session: put {NAME} into it, since each query has a group of its own")
    if query is not None and NAME in group_id and not query.name:
        raise UsageError(f"group id {group_id!r} of a query without a name: set one with queryName")
    commits = OffsetCommits(group_id, None if query is None else str(query.id), topics, lambda name: KafkaGroup(name, kafka))
    commits.listen(_streams_of(query) if session is None else session.streams, QueryListener(commits))
    if query is not None and (last := query.lastProgress) is not None:
        # of a batch before the call
        commits.progressed(last.json)
    return commits


def _streams_of(query: Any) -> StreamingQueryManager:
    """The queries of the session that started this one; PySpark has no public way to it, and another may be the active one."""
    if (session := getattr(query, "_session", None)) is not None:  # Spark Connect
        return session.streams  # type: ignore[no-any-return]  # of a private attribute
    return StreamingQueryManager(query._jsq.sparkSession().streams())


def _check_arguments(group_id: str, kafka: Mapping[str, object], topics: Collection[str] | None) -> None:
    """Raises UsageError, also for what is wrong with the client and its options: here, not in a thread."""
    if not group_id:
        raise UsageError("the group id is empty: name a group that no consumer uses")
    if "bootstrap.servers" not in kafka:
        raise UsageError("no bootstrap.servers among the options of the Kafka client")
    if isinstance(topics, str):
        raise UsageError(f"topics is the text {topics!r}: pass a list of names")
    KafkaGroup(group_id, kafka).close()


class QueryListener(StreamingQueryListener):
    """Passes the events of queries on. Spark logs what a listener raises, so nothing is raised."""

    def __init__(self, commits: OffsetCommits) -> None:
        self._commits = commits

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Ignore the event: nothing is finished yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Take a batch, which is finished and in the checkpoint."""
        self._commits.progressed(event.progress.json)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Ignore the event: nothing is new."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Renew the commits of this query no more."""
        self._commits.ended(str(event.id))
