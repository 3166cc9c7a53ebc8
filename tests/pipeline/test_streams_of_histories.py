"""Streams of Spark over the histories, and the recipe of one over `batches`: across maintenance and interrupted batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cut_off_batches import dying_before
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import input_file_name, regexp_extract
from pyspark.sql.streaming.query import StreamingQuery
from recipes import STREAM, recipes
from status_story import Story

from coordinator_core.health import keep_rules
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.upkeep.maintain import Maintenance, maintain

pytestmark = [pytest.mark.spark, pytest.mark.long]

DAY = 86_400
HISTORIES = ("offset_history", "lag_history", "end_offsets")
#: Keeps all rows, and removes some of each history.
COMPACTION = Maintenance(9_999, 168, 16, keep_rules("9d:all"))
RETENTION = Maintenance(1, 168, 16, keep_rules("1m:all 5m:1m"))


class Stream:
    """A stream over a history, with the rows that it has read and their files."""

    def __init__(self, spark: SparkSession, story: Story, name: str, checkpoint: Path, *, ignores_deletes: bool = True) -> None:
        self._spark, self._root, self._name, self._checkpoint = spark, story.root, name, checkpoint
        self.rows: list[dict[str, Any]] = []
        self.start(ignores_deletes=ignores_deletes)

    def start(self, *, ignores_deletes: bool) -> None:
        """Start, or continue at the checkpoint."""
        reader = self._spark.readStream.format("delta").option("ignoreDeletes", ignores_deletes)
        named = reader.load(f"{self._root}/{self._name}").withColumn("file", regexp_extract(input_file_name(), "[^/]+$", 0))
        writer = named.writeStream.foreachBatch(self._deliver).option("checkpointLocation", str(self._checkpoint))
        self.query: StreamingQuery = writer.trigger(processingTime="200 milliseconds").start()

    def _deliver(self, rows: DataFrame, _number: int) -> None:
        self.rows += rows.toArrow().to_pylist()

    def checked(self) -> list[str]:
        """The rows of finished batches: their file is in the table at the version that the batch names."""
        batches = Snapshot.open(self._root).query("SELECT batch_id, versions FROM batches").to_pylist()
        files = {}
        for batch_id in {row["batch_id"] for row in self.rows}:
            (version,) = [dict(row["versions"])[self._name] for row in batches if row["batch_id"] == batch_id]
            uris = DeltaTable(f"{self._root}/{self._name}", version=version).file_uris()
            files[batch_id] = {uri.rpartition("/")[2] for uri in uris}
        kept = [row for row in self.rows if row["file"] in files[row["batch_id"]]]
        return sorted(str({name: value for name, value in row.items() if name != "file"}) for row in kept)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Two groups, whose lag is sampled every 10 s for two minutes."""
    story = Story(str(tmp_path / "tables")).end(5)
    story.commit(5).commit(7, group="other")
    samples(story, 0)
    return story


def samples(story: Story, start: int) -> None:
    for second in range(start, start + 120, 10):
        story.at(second).end(6 + second).sample()


class Written:
    """All rows that finished batches have written into the histories, also those that maintenance has removed since."""

    def __init__(self, story: Story) -> None:
        self._root = story.root
        self._rows: dict[str, set[str]] = {name: set() for name in HISTORIES}

    def look(self) -> dict[str, list[str]]:
        snapshot = Snapshot.open(self._root)
        for name, rows in self._rows.items():
            rows |= {str(row) for row in snapshot.query(f"SELECT * FROM {name}").to_pylist()}
        return {name: sorted(rows) for name, rows in self._rows.items()}


@pytest.fixture
def streams(story: Story, spark: SparkSession, tmp_path: Path) -> Iterator[dict[str, Stream]]:
    session = spark.newSession()
    found = {name: Stream(session, story, name, tmp_path / f"checkpoint-{name}") for name in HISTORIES}
    # Delta's default is a stream over a table from which nothing is ever removed
    found["strict"] = Stream(session, story, "lag_history", tmp_path / "checkpoint-strict", ignores_deletes=False)
    yield found
    for stream in found.values():
        stream.query.stop()


class Copy:
    """What the recipe of docs/recipes.md has copied of `offset_history` until now."""

    def __init__(self, spark: SparkSession, story: Story) -> None:
        self._spark, self._root = spark.newSession(), story.root
        (self._recipe,) = (each for each in recipes(is_spark=True) if each.title == STREAM)

    def rows(self) -> list[str]:
        """Run the recipe once more."""
        self._recipe.run(self._root, {"spark": self._spark})
        copied = DeltaTable(f"{self._root}-copies/offset_history").to_pyarrow_dataset().to_table()
        return sorted(str(row) for row in copied.to_pylist())


@pytest.fixture
def copy(spark: SparkSession, story: Story) -> Copy:
    return Copy(spark, story)


def test_streams_go_on_across_maintenance_and_interrupted_batches(story: Story, streams: dict[str, Stream], copy: Copy) -> None:
    written = Written(story)

    def read(*names: str) -> None:
        for name in names:
            streams[name].query.processAllAvailable()

    def tidied(limits: Maintenance) -> None:
        maintain(story.root, limits, story.clock(), lambda _line: None)

    read(*streams)
    story.at(2 * DAY).commit(9).commit(8, group="other").batch()
    story.commit(11)
    with dying_before("batches"):
        story.batch()
    read(*streams)
    story.commit(12).restart()
    samples(story, 2 * DAY)
    with dying_before("batches"):
        tidied(COMPACTION)
    read(*streams)
    tidied(COMPACTION)
    story.restart()
    story.at(2 * DAY + 200).commit(13).sample()
    read(*streams)
    before = written.look()
    assert copy.rows() == before["offset_history"]
    with dying_before("batches"):
        tidied(RETENTION)
    read(*HISTORIES)
    story.restart()
    story.at(2 * DAY + 210).commit(14).sample()
    tidied(RETENTION)
    after = Snapshot.open(story.root)
    for name in HISTORIES:
        assert 0 < after.query(f"SELECT * FROM {name}").num_rows < len(before[name]), name
    story.restart()
    story.at(2 * DAY + 220).commit(15).sample()
    read(*HISTORIES)
    every = written.look()
    assert {name: streams[name].checked() for name in HISTORIES} == every
    # without a check
    assert copy.rows() == every["offset_history"]
    # the rows of the interrupted batch, and no others
    assert {name: len(streams[name].rows) - len(streams[name].checked()) for name in HISTORIES} == {
        "offset_history": 1,
        "lag_history": 0,
        "end_offsets": 0,
    }
    assert check(story.root) == []
    strict = streams["strict"]
    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE_IGNORE_DELETE"):
        strict.query.processAllAvailable()
    strict.start(ignores_deletes=True)
    read("strict")
    assert strict.checked() == written.look()["lag_history"]
