"""The whole job on genuine logs: the tables equal the brokers' answers."""

import shutil
from pathlib import Path
from typing import Any

import genuine
import pyarrow as pa
import pytest
from broker_answers import differences
from chispa import assert_df_equality
from deltalake import DeltaTable
from jobs import run_job
from log_builder import member
from pyspark.sql import SparkSession
from segment_builder import LogBuilder

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import TablesError, UsageError
from pipelines.source.changes import DDL, unpacked
from pipelines.source.data_source import ConsumerOffsetsDataSource
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.long]

ERAS = {"0.10.2.2": "0.10", "2.8.2": "3", "4.1.1": "4"}
#: The oldest format of records and the newest one; `test_a_repeated_batch_changes_nothing` reads the log of 2.8.2.
VERSIONS = [pytest.param(version, marks=[pytest.mark.slow] if version == "2.8.2" else []) for version in ERAS]
STATE_TABLES = ("offsets", "pending_offsets", "groups", "members", "group_records", "topic_ids")
COMPARED = (
    *STATE_TABLES,
    *("offset_history", "group_history", "membership_history", "ownership_history", "quarantine"),
)


def query(tables: Path, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Snapshot.open(str(tables)).query(sql).to_pylist()
    return rows


def commit(offset: int, *, group: str = "g", partition: int = 0) -> tuple[bytes, bytes | None]:
    return encode(Record(1, OffsetCommitKey(group, "t", partition), OffsetCommitValue(offset, commit_timestamp=1), 3))


def tombstone(*, group: str = "g", partition: int = 0) -> tuple[bytes, bytes | None]:
    return encode(Record(1, OffsetCommitKey(group, "t", partition), None, None))


@pytest.mark.parametrize("version", VERSIONS)
def test_segments_give_what_the_broker_answered(version: str, tmp_path: Path) -> None:
    log = genuine.segments_dir(version, tmp_path / "log")
    run_job(f"segments:{log}", tmp_path / "tables", era=ERAS[version])
    assert differences(str(tmp_path / "tables"), genuine.expected(version)) == []
    assert query(tmp_path / "tables", "SELECT * FROM quarantine") == []
    assert check(str(tmp_path / "tables")) == []


@pytest.mark.parametrize("version", ["4.1.1", *(pytest.param(each, marks=pytest.mark.slow) for each in ("0.10.2.2", "2.8.2"))])
def test_jsonl_gives_the_same_but_for_transactions(version: str, tmp_path: Path) -> None:
    dump = Path(__file__).parents[1] / "data" / f"kafka-{version}.records.jsonl"
    run_job(f"jsonl:{dump}", tmp_path / "tables", era=ERAS[version])
    # a client does not see the markers that end transactions
    answers = {
        kind: {group: found for group, found in genuine.expected(version).get(kind, {}).items() if not group.startswith("txn-")}
        for kind in ("committed", "described")
    }
    assert differences(str(tmp_path / "tables"), answers, all_names_known=False) == []
    assert query(tmp_path / "tables", "SELECT * FROM quarantine") == []


def test_share_and_streams_groups(tmp_path: Path) -> None:
    log = genuine.segments_dir("4.3.0-share-streams", tmp_path / "log")
    run_job(f"segments:{log}", tmp_path / "tables")
    found = query(tmp_path / "tables", "SELECT group_id, group_type, state, member_count FROM groups ORDER BY group_id")
    assert [tuple(row.values()) for row in found] == [
        ("share-left", "share", "Empty", 0),
        ("share-workers", "share", "Stable", 2),
        ("streams-app", "streams", "Stable", 2),
    ]
    owned = query(tmp_path / "tables", "SELECT DISTINCT group_id, topic FROM assignments WHERE topic IS NULL")
    assert owned == []
    assert query(tmp_path / "tables", "SELECT * FROM quarantine") == []


@pytest.mark.long
def test_a_second_run_picks_up_only_what_is_new(tmp_path: Path) -> None:
    tables, log = tmp_path / "tables", LogBuilder(tmp_path / "log")
    log.append(0, [commit(1), commit(2)])
    run_job(f"segments:{log.directory}", tables)
    assert not [line for line in run_job(f"segments:{log.directory}", tables) if line.startswith("batch")]
    log.append(0, [commit(9)])
    log.append(1, [commit(5, group="h")])
    lines = run_job(f"segments:{log.directory}", tables)
    assert [line.split(",")[0] for line in lines if line.startswith("batch")] == ["batch 1: 2 records read"]
    found = query(tables, "SELECT group_id, committed_offset, batch_id FROM committed_offsets ORDER BY group_id")
    assert [tuple(row.values()) for row in found] == [("g", 9, 1), ("h", 5, 1)]
    as_of = Snapshot.open(str(tables), "0").query("SELECT committed_offset FROM committed_offsets").to_pylist()
    assert as_of == [{"committed_offset": 2}]


def test_a_repeated_batch_changes_nothing(tmp_path: Path) -> None:
    tables, log = tmp_path / "tables", genuine.segments_dir("2.8.2", tmp_path / "log")
    run_job(f"segments:{log}", tables, era="3")
    store = TableStore(str(tables))
    versions = {name: store.table(name).version() for name in definitions.WRITE_ORDER}
    # as if the stream had died before it recorded that the batch is done
    for noted in (tables / "_checkpoint" / "commits").glob("*0*"):
        noted.unlink()
    run_job(f"segments:{log}", tables, era="3")
    assert {name: store.table(name).version() for name in definitions.WRITE_ORDER} == versions


@pytest.mark.long
def test_a_lost_checkpoint_loses_nothing(tmp_path: Path) -> None:
    tables, log = tmp_path / "tables", LogBuilder(tmp_path / "log")
    log.append(0, [commit(1)])
    run_job(f"segments:{log.directory}", tables)
    shutil.rmtree(tables / "_checkpoint")
    log.append(0, [commit(4)])
    run_job(f"segments:{log.directory}", tables)
    batches = query(tables, "SELECT batch_id, records_read FROM batches ORDER BY batch_id")
    assert [tuple(row.values()) for row in batches] == [(0, 1), (1, 1)]


@pytest.mark.long
def test_tables_that_were_restored_without_the_checkpoint_are_refused(tmp_path: Path) -> None:
    tables, log = tmp_path / "tables", LogBuilder(tmp_path / "log")
    log.append(0, [commit(1)])
    run_job(f"segments:{log.directory}", tables)
    shutil.copytree(tables, tmp_path / "backup")
    log.append(0, [commit(2)])
    run_job(f"segments:{log.directory}", tables)
    shutil.rmtree(tables / "offsets")
    for name in definitions.WRITE_ORDER:
        shutil.rmtree(tables / name, ignore_errors=True)
        shutil.copytree(tmp_path / "backup" / name, tables / name)
    log.append(0, [commit(3)])
    with pytest.raises(TablesError, match=r"remove .*_checkpoint to continue from the tables"):
        run_job(f"segments:{log.directory}", tables)


def members(*names: str) -> tuple[bytes | None, bytes | None]:
    """A group with these members; of two such records in a batch, the task reports the changes of the second."""
    value = GroupMetadataValue("consumer", len(names), "range", names[0], -1, tuple(member(name) for name in names))
    return encode(Record(2, GroupMetadataKey("m"), value, 3))


def first_half(log: LogBuilder) -> None:
    log.append(0, [commit(n, partition=n) for n in range(6)])
    log.append(0, [commit(70), commit(71, partition=1)], producer_id=7, transactional=True)
    log.append(1, [commit(3, group="h"), members("m1"), members("m1", "m2")])


def second_half(log: LogBuilder) -> None:
    """Rewinds, removals and resolutions for what the first half left."""
    log.append(0, [commit(60, partition=1), tombstone(partition=2), commit(1, partition=5), commit(2, partition=9)])
    log.marker(0, 7, commit=True)
    log.append(1, [tombstone(group="h"), encode(Record(2, GroupMetadataKey("h"), None, None)), members("m2"), members("m3")])


def removal(log: LogBuilder) -> None:
    """Only removals."""
    log.append(0, [commit(3, partition=9), tombstone(partition=5)])


@pytest.mark.long
def test_both_writers_write_the_same(tmp_path: Path, spark: SparkSession) -> None:
    era = "3"  # the case in which a tombstone and a marker of the same batch can restore a pending commit
    small, bulk = tmp_path / "small", tmp_path / "bulk"
    log = LogBuilder(tmp_path / "log")
    for write_part in (first_half, second_half, removal):
        write_part(log)
        run_job(f"segments:{log.directory}", small, era=era)
        run_job(f"segments:{log.directory}", bulk, era=era, bulk_rows=0)
    few, many = Snapshot.open(str(small)), Snapshot.open(str(bulk))
    for name in COMPARED:
        one, other = (snapshot.query(f"SELECT * FROM {name}") for snapshot in (few, many))
        assert one.num_rows > 0 or not name.endswith("_history"), name
        assert one.schema.equals(other.schema), name
        assert sorted(map(str, _values(one))) == sorted(map(str, _values(other))), name
    # one table as Spark reads it; all of them this way take a minute and a half
    few_rows, many_rows = (spark.read.format("delta").load(str(tables / "offsets")) for tables in (small, bulk))
    assert_df_equality(few_rows, many_rows, ignore_row_order=True, ignore_nullable=True)
    assert check(str(bulk)) == []
    changes = query(
        bulk, "SELECT group_id, partition, change FROM offset_history WHERE batch_id = 1 ORDER BY group_id, partition"
    )
    assert [tuple(row.values()) for row in changes] == [
        ("g", 0, "commit"),
        ("g", 1, "commit"),
        ("g", 2, "tombstone"),
        ("g", 5, "rewind"),
        ("g", 9, "commit"),
        ("h", 0, "tombstone"),
    ]
    operations = {entry["operation"] for entry in DeltaTable(str(bulk / "offsets")).history()}
    assert {"WRITE", "MERGE"} <= operations


@pytest.mark.long
def test_spark_and_delta_rs_read_the_same_tables(tmp_path: Path, spark: SparkSession) -> None:
    tables, log = tmp_path / "tables", genuine.segments_dir("4.1.1", tmp_path / "log")
    run_job(f"segments:{log}", tables)
    snapshot = Snapshot.open(str(tables))
    # tables that are merged, replaced and appended, and one with arrays of structures
    for name in ("offsets", "members", "offset_history", "batches"):
        ours = snapshot.query(f"SELECT * FROM {name}")
        theirs = spark.read.format("delta").load(str(tables / name)).toArrow()
        assert ours.schema.names == theirs.schema.names
        assert sorted(map(str, _values(ours))) == sorted(map(str, _values(theirs))), name


def _values(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(_plain(value) for value in row.values()) for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


@pytest.mark.long
def test_batches_are_bounded_by_admission_control(tmp_path: Path) -> None:
    log = genuine.segments_dir("4.1.1", tmp_path / "log")
    run_job(f"segments:{log}", tmp_path / "tables", max_records=60)
    assert differences(str(tmp_path / "tables"), genuine.expected("4.1.1")) == []
    batches = query(tmp_path / "tables", "SELECT records_read FROM batches")
    assert len(batches) >= 3


def test_the_source_reads_in_batch_too(tmp_path: Path, spark: SparkSession) -> None:
    log = genuine.segments_dir("2.8.2", tmp_path / "log")
    spark.dataSource.register(ConsumerOffsetsDataSource)
    packed_rows = spark.read.format("consumer_offsets").option("era", "3").load(f"segments:{log}")
    rows = packed_rows.mapInArrow(unpacked, DDL)
    kinds = {row["kind"]: row["count"] for row in rows.groupBy("kind").count().collect()}
    assert kinds["commit"] > 20
    assert kinds["record"] + kinds["state_only"] >= 10
    assert kinds["group_change"] > 0


def test_expiry_is_applied_without_a_sweeping_coordinator(tmp_path: Path) -> None:
    tables, log = tmp_path / "tables", genuine.segments_dir("4.1.1", tmp_path / "log")
    run_job(f"segments:{log}", tables)
    lasting = {r["group_id"] for r in query(tables, "SELECT group_id FROM expiring_offsets WHERE expires_at IS NULL")}
    much_later = 1_795_229_230_560 + 400 * 86_400_000
    run_job(f"segments:{log}", tables, expiry="apply", now_ms=much_later)
    assert {r["group_id"] for r in query(tables, "SELECT group_id FROM committed_offsets")} == lasting
    gone = query(tables, "SELECT DISTINCT group_id FROM group_history WHERE change = 'expire'")
    assert {"nightly-report", "rewound", "next-gen-left"} <= {row["group_id"] for row in gone}
    assert check(str(tables)) == []


def test_another_era_is_refused(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "log")
    log.append(0, [commit(1)])
    run_job(f"segments:{log.directory}", tmp_path / "tables", era="3")
    with pytest.raises(UsageError, match="made with era 3, not 4"):
        run_job(f"segments:{log.directory}", tmp_path / "tables", era="4")
