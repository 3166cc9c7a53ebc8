"""Which commits of other programs are harmless, by their actions."""

import json
from typing import Any

import pytest

from pipelines.tables.foreign_commits.commit import Commit
from pipelines.tables.foreign_commits.features import TableProtocol
from pipelines.tables.foreign_commits.rules import TableState, reason_to_revert, reverted_lines, review

COLUMN = {"name": "group_id", "type": "string", "nullable": False, "metadata": {"comment": "Consumer group"}}
PROPERTIES = {"delta.enableDeletionVectors": "false", "delta.dataSkippingNumIndexedCols": "4"}


def schema(*columns: Any) -> str:
    return json.dumps({"type": "struct", "fields": list(columns)})


BEFORE = TableState.of(schema(COLUMN), [], PROPERTIES, TableProtocol())


def metadata(*columns: Any, partition: tuple[str, ...] = (), **properties: str) -> dict[str, Any]:
    changed = {name.replace("__", "."): value for name, value in properties.items()}
    configuration = {name: value for name, value in {**PROPERTIES, **changed}.items() if value}
    fields = {
        "schemaString": schema(*(columns or (COLUMN,))),
        "partitionColumns": list(partition),
        "configuration": configuration,
    }
    return {"metaData": {"id": "t", **fields}}


def protocol(reader: int, writer: int, *features: str, writes: tuple[str, ...] = ()) -> dict[str, Any]:
    lists = {"readerFeatures": list(features), "writerFeatures": [*features, *writes]} if writer == 7 else {}
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **lists}}


def moved(**fields: Any) -> dict[str, Any]:
    return {"path": "part-1.parquet", "size": 1, "dataChange": False, **fields}


def commit(*actions: dict[str, Any], version: int = 5, **info: Any) -> Commit:
    lines = [json.dumps(each) for each in ({"commitInfo": info}, *actions)]
    return Commit.parsed(version, "\n".join(lines).encode())


HARMLESS = {
    "OPTIMIZE": [{"add": moved()}, {"remove": moved(path="part-0.parquet")}],
    "ZORDER by an operation without a name": [{"remove": moved()}, {"add": moved(path="part-9.zstd.parquet")}],
    "VACUUM END": [],
    "an unknown operation": [],
    "COMMENT on a column": [metadata({**COLUMN, "metadata": {"comment": "a team's words"}})],
    "COMMENT on a column without one": [metadata({**COLUMN, "metadata": {}})],
    "a label of a team": [metadata(owner="payments", team__cost="1")],
    "change data feed": [metadata(delta__enableChangeDataFeed="true"), protocol(1, 4)],
    "change data feed as a feature": [
        metadata(delta__enableChangeDataFeed="true"),
        protocol(1, 7, writes=("changeDataFeed", "invariants", "appendOnly")),
    ],
    "statistics": [metadata(delta__dataSkippingNumIndexedCols="8")],
    "statistics of default": [metadata(delta__dataSkippingNumIndexedCols="")],
    "a prefix": [metadata(delta__autoOptimize__autoCompact="true")],
    "a feature that is readable": [protocol(3, 7, "timestampNtz")],
    "a transaction of another application": [{"txn": {"appId": "their-stream", "version": 3}}],
}


@pytest.mark.parametrize("actions", HARMLESS.values(), ids=list(HARMLESS))
def test_harmless(actions: list[dict[str, Any]]) -> None:
    assert reason_to_revert(commit(*actions), BEFORE) is None


HARMFUL = {
    "it changes rows": [{"add": moved(dataChange=True)}],
    "it changes rows ": [{"remove": {"path": "part-0.parquet"}}],
    "it changes rows  ": [{"cdc": {"path": "_change_data/c.parquet", "dataChange": False}}],
    "it has a deletion vector": [{"add": moved(deletionVector={"storageType": "u"})}],
    "it names the file '../b.parquet'": [{"add": moved(path="../b.parquet")}],
    "it names the file 'day=1/b.parquet'": [{"add": moved(path="day=1/b.parquet")}],
    "it changes the columns note": [metadata(COLUMN, {**COLUMN, "name": "note"})],
    "it changes the columns group_id": [metadata({**COLUMN, "nullable": True})],
    "it changes the columns group_id ": [metadata({**COLUMN, "metadata": {"delta.invariants": "x"}})],
    "it changes the partitioning": [metadata(partition=("group_id",))],
    "it changes the properties delta.constraints.positive": [metadata(delta__constraints__positive="p > 0"), protocol(1, 3)],
    "it changes the properties delta.appendOnly": [metadata(delta__appendOnly="true")],
    "it changes the properties delta.enableDeletionVectors": [metadata(delta__enableDeletionVectors="true")],
    "it changes the properties grouplake.layout": [metadata(grouplake__layout="9.9")],
    "it changes the properties delta.unheardOf": [metadata(delta__unheardOf="1")],
    "it needs a reader of protocol 3 (deletionVectors)": [protocol(3, 7, "deletionVectors")],
    "it needs a reader of protocol 2 (columnMapping)": [protocol(2, 5)],
    "it needs a reader of protocol 4 (version 4)": [protocol(4, 8)],
    "it needs a writer of protocol 7 (rowTracking)": [protocol(1, 7, writes=("rowTracking",))],
    "it needs a writer of protocol 6 (columnMapping, identityColumns)": [protocol(1, 6)],
    "it has the actions domainMetadata": [{"domainMetadata": {"domain": "d"}}],
    "its metadata cannot be read": [{"metaData": {"schemaString": "[]"}}],
}


@pytest.mark.parametrize(("reason", "actions"), HARMFUL.items())
def test_harmful(reason: str, actions: list[dict[str, Any]]) -> None:
    assert reason_to_revert(commit(*actions, operation="OPTIMIZE"), BEFORE) == reason.rstrip()


@pytest.mark.parametrize(
    "made",
    [
        commit({"add": moved()}, userMetadata="grouplake generation 3, batch 7"),
        commit({"add": moved()}, userMetadata="grouplake generation 3, batch 7, attempt 2"),
        commit({"txn": {"appId": "grouplake-writer", "version": 4}}),
        commit({"txn": {"appId": "grouplake", "version": 4}}),
    ],
)
def test_commits_of_grouplake(made: Commit) -> None:
    assert made.is_ours


def test_commits_of_others_are_not_those_of_grouplake() -> None:
    assert not commit(
        {"txn": {"appId": "grouplaker", "version": 4}}, userMetadata="about grouplake generation 3, batch 7"
    ).is_ours


def test_a_review_keeps_what_comes_before_the_first_that_is_not_harmless() -> None:
    found = review(
        [
            commit(metadata(owner="payments"), version=6, operation="SET TBLPROPERTIES"),
            commit({"add": moved()}, version=7, operation="OPTIMIZE"),
            commit({"add": moved(dataChange=True)}, version=8, operation="WRITE", userName="alice", timestamp=1_772_359_200_000),
            commit(metadata(owner="orders"), version=9, operation="SET TBLPROPERTIES", engineInfo="delta-rs:py-1.6.6"),
            commit(version=10, operation="VACUUM END"),
            commit({"add": moved()}, version=11, userMetadata="grouplake generation 3, batch 7"),
        ],
        BEFORE,
        5,
    )
    assert found.kept_version == 7
    assert reverted_lines("offsets", "/t", found) == [
        "table offsets under /t: reverted version 8 (WRITE by alice at 2026-03-01T10:00:00Z): it changes rows",
        "table offsets under /t: reverted version 9 (SET TBLPROPERTIES by an unnamed user of delta-rs:py-1.6.6): "
        "it follows version 8",
    ]


def test_an_unfinished_batch_of_grouplake_is_reverted_without_a_line() -> None:
    ours = "grouplake generation 3, batch 7"
    found = review([commit({"add": moved(dataChange=True)}, userMetadata=ours)], BEFORE, 5, is_append_only=True)
    assert found.kept_version == 5
    assert found.reverted
    assert reverted_lines("offsets", "/t", found) == []


MOVED = [{"remove": moved(path="part-0.parquet")}, {"add": moved()}]
REMOVED = [{"remove": moved(path="part-0.parquet", dataChange=True)}, {"add": moved()}]


@pytest.mark.parametrize(
    ("actions", "is_append_only", "is_kept"),
    [
        pytest.param(MOVED, False, True, id="compaction of a merged table"),
        pytest.param(MOVED, True, True, id="compaction of a history"),
        pytest.param(REMOVED, True, True, id="retention of a history"),
        pytest.param(REMOVED[:1], True, True, id="retention of whole files"),
        pytest.param(REMOVED[:1], False, False, id="deletions of a merge"),
        pytest.param([*REMOVED, {"add": moved(path="part-2.parquet", dataChange=True)}], True, False, id="an overwrite"),
        pytest.param([{"add": moved(dataChange=True)}], True, False, id="an append"),
        pytest.param([*REMOVED, metadata(owner="x", delta__appendOnly="true")], True, False, id="another property"),
        pytest.param([{"txn": {"appId": "grouplake", "version": 7}}], False, True, id="nothing"),
    ],
)
def test_unfinished_maintenance_of_grouplake_stays(actions: list[dict[str, Any]], is_append_only: bool, is_kept: bool) -> None:
    made = commit(*actions, version=6, userMetadata="grouplake generation 3, batch 7")
    found = review([made], BEFORE, 5, is_append_only=is_append_only)
    assert found.kept_version == (6 if is_kept else 5)
    assert reverted_lines("offset_history", "/t", found) == []


def test_a_property_counts_against_the_harmless_commit_before() -> None:
    kept = commit(metadata(delta__enableChangeDataFeed="true"), version=6)
    assert review([kept, commit({"add": moved()}, version=7)], BEFORE, 5).kept_version == 7


def test_names_in_a_commit_are_printable_and_short() -> None:
    text = str(commit(operation="WRITE\x1b[2J\n", userName="a" * 500))
    assert text.isprintable()
    assert text == f"version 5 (WRITE·[2J· by {'a' * 80})"


@pytest.mark.parametrize("content", [b"\xff", b"[1]", b'{"add": 3}', b"{"])
def test_entries_that_are_none(content: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        Commit.parsed(1, content)
