"""One table and the start of a job in object stores: exclusive commits, the probe, credentials, and messages. Without Spark."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from object_stores import StoreServer
from obstore.store import from_url
from store_proxy import store_proxy
from store_roots import EXCLUSIVE, SERVERS, Servers, lead_to, running_servers

from pipelines.cli import main
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.tables.conditional_writes import expect_conditional_writes
from pipelines.tables.object_stores import Objects, reason_of
from pipelines.tables.sorted_files.change_files import CHANGE_DATA_FEED
from pipelines.tables.sorted_files.file_order import order_files
from pipelines.tables.sorted_files.file_ranges import file_runs, range_starts
from pipelines.tables.sorted_files.sorted_files import replace_files, sorted_files_of
from pipelines.tables.store import TableStore, query
from pipelines.tables.stream_checkpoints import checkpoint_location, remove_stale_checkpoints
from pipelines.tables.writer import CommitConflict
from pipelines.tables.writer_lock import writer_lock
from pipelines.tables.writers.executor_tasks import AppendTask, MergeTask, WrittenFiles
from pipelines.tables.writers.sorted_merge import merge_sorted
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite, source_schema

pytestmark = pytest.mark.store

#: fake-gcs-server takes minutes to build
GCS = pytest.param("gcs", marks=pytest.mark.slow)
KINDS = [*(kind for kind in SERVERS if kind != "gcs"), GCS]
EXCLUSIVE_KINDS = [*(kind for kind in EXCLUSIVE if kind != "gcs"), GCS]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with running_servers() as running:
        yield running


@pytest.fixture
def s3(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    lead_to(servers.of("s3"), monkeypatch)
    return servers.of("s3")


@pytest.fixture(params=KINDS)
def root(request: pytest.FixtureRequest, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new folder in a store of each kind."""
    server = servers.of(request.param)
    lead_to(server, monkeypatch)
    return server.new_root()


def table(uri: str, **properties: str) -> DeltaTable:
    definition = definitions.table("offsets")
    return DeltaTable.create(uri, schema=definition.schema, configuration={**definition.properties, **properties})


def write(*groups: str, offset: int, is_removal: bool = False) -> TableWrite:
    rows = [
        {
            "group_id": group,
            "topic": "t",
            "partition": 0,
            "committed_offset": offset,
            "metadata": "",
            "log_partition": 0,
            "log_offset": offset,
            "batch_id": 0,
            EFFECTIVE_OFFSET: offset,
            DELETED: is_removal,
        }
        for group in groups
    ]
    return TableWrite("offsets", pa.Table.from_pylist(rows, source_schema("offsets")))


def offsets(uri: str) -> dict[str, int]:
    rows = query({"offsets": DeltaTable(uri)}, "SELECT group_id, committed_offset FROM offsets").to_pylist()
    return {row["group_id"]: row["committed_offset"] for row in rows}


def test_leaves_are_merged_replaced_and_ordered(root: str) -> None:
    uri = f"{root}/offsets"
    opened = table(uri)
    assert merge_sorted(opened, write("a", "b", "c", offset=1), "first")
    assert merge_sorted(opened, write("b", "d", offset=2), "second")
    assert not merge_sorted(opened, write("b", offset=1), "late")
    assert merge_sorted(opened, write("c", offset=3, is_removal=True), "third")
    assert offsets(uri) == {"a": 1, "b": 2, "d": 2}
    assert opened.history(1)[0]["userMetadata"] == "third"
    assert order_files(opened, "offsets", "") == (0, 0)


def test_files_of_tasks_are_committed(root: str) -> None:
    """What executors do, without Spark: an append to an empty table, then a merge in two ranges of groups."""
    uri, definition = f"{root}/offsets", definitions.table("offsets")
    opened = table(uri)
    first = write(*(f"g{number:04}" for number in range(9_000)), offset=1).rows.select(definition.schema.names)
    appended = files_of_task(AppendTask(uri, definition.schema, is_sorted=True), first)
    assert len(appended.added) == 3
    replace_files(opened, [], appended.added, "append")
    runs = file_runs(sorted_files_of(opened))
    (start,) = range_starts(runs, 2)
    task = MergeTask(uri, definition.schema, definition.key, runs)
    merged = [files_of_task(task, write(group, offset=2).rows) for group in ("g0001", start)]
    assert [len(part.removed) for part in merged] == [1, 1]
    by_path = {sorted_file.path: sorted_file for sorted_file in sorted_files_of(opened)}
    replace_files(
        opened,
        [by_path[path] for part in merged for path in part.removed],
        [one for part in merged for one in part.added],
        "merge",
    )
    found = offsets(uri)
    assert len(found) == 9_000
    assert [group for group, offset in sorted(found.items()) if offset == 2] == ["g0001", start]


def files_of_task(task: AppendTask | MergeTask, rows: pa.Table) -> WrittenFiles:
    schema = pa.schema([(name, pa.string()) for name in ("added", "removed", "changed")])
    return WrittenFiles.of(pa.Table.from_batches(task(rows.to_batches()), schema))


def test_changed_rows_are_committed_for_a_feed(root: str) -> None:
    first = table(f"{root}/offsets", **{CHANGE_DATA_FEED: "true"})
    merge_sorted(first, write("a", "b", offset=1), "first")
    second = DeltaTable(f"{root}/offsets")
    merge_sorted(first, write("b", "c", offset=2), "second")
    with pytest.raises(CommitConflict):
        merge_sorted(second, write("a", offset=2), "late")
    feed = pa.table(DeltaTable(f"{root}/offsets").load_cdf(starting_version=2).read_all()).to_pylist()
    assert sorted((row["_change_type"], row["group_id"], row["committed_offset"]) for row in feed) == [
        ("insert", "c", 2),
        ("update_postimage", "b", 2),
        ("update_preimage", "b", 1),
    ]
    assert offsets(f"{root}/offsets") == {"a": 1, "b": 2, "c": 2}


def test_an_old_version_cannot_commit(root: str) -> None:
    first = table(f"{root}/offsets")
    second = DeltaTable(f"{root}/offsets")
    merge_sorted(first, write("a", offset=1), "first")
    with pytest.raises(CommitConflict):
        merge_sorted(second, write("a", offset=2), "second")
    assert offsets(f"{root}/offsets") == {"a": 1}


@pytest.mark.parametrize("kind", EXCLUSIVE_KINDS)
def test_of_simultaneous_commits_one_succeeds(kind: str, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    lead_to(servers.of(kind), monkeypatch)
    uri = f"{servers.of(kind).new_root()}/offsets"
    table(uri)
    writers, rounds = 4, 4

    def append(number: int) -> list[str]:
        done = []
        for number_of_round in range(rounds):
            group = f"{number}-{number_of_round}"
            while group not in done:
                try:
                    merge_sorted(DeltaTable(uri), write(group, offset=1), group)
                    done.append(group)
                except CommitConflict:
                    continue
        return done

    with ThreadPoolExecutor(writers) as threads:
        done = [group for groups in threads.map(append, range(writers)) for group in groups]
    assert sorted(offsets(uri)) == sorted(done)
    assert len(done) == writers * rounds == DeltaTable(uri).version()


def test_a_store_with_conditional_writes_is_accepted(root: str) -> None:
    expect_conditional_writes(root)
    with writer_lock(root, "grouplake run") as is_locked:
        assert not is_locked
    assert Objects(root).keys("") == []


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("ignores conditions", "it replaced an object that existed"),
        ("refuses conditions", "NotImplemented: A header you provided implies functionality that is not implemented"),
    ],
)
def test_a_store_without_conditional_writes_is_refused(
    rule: str, reason: str, s3: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, log = s3.new_root(), tmp_path / "log" / "__consumer_offsets-0"
    log.mkdir(parents=True)
    (log / f"{0:020}.log").touch()
    with store_proxy(s3.endpoint, rule, tmp_path / "proxy") as proxy:
        lead_to(s3.behind(proxy.address), monkeypatch)
        assert main(["run", "--source", f"segments:{tmp_path / 'log'}", "--tables", root]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"grouplake: the store of {root} does not support conditional writes (PUT with If-None-Match): {reason}. "
        "Two writers could replace each other's commits; use a store that has them, or a local folder"
    )
    lead_to(s3, monkeypatch)
    bucket = f"{root.removesuffix('/kafka/prod')}/"
    assert [meta for page in obstore.list(from_url(bucket)) for meta in page] == []


def test_errors_are_one_line(s3: StoreServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--tables", "s3://no-such-bucket/prod", "SELECT 1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "NoSuchBucket: The specified bucket does not exist" in line
    with pytest.raises(UsageError, match=r"cannot write under s3://no-such-bucket/prod: .*NoSuchBucket"):
        expect_conditional_writes("s3://no-such-bucket/prod")
    with pytest.raises(UsageError, match=r"unknown kind of store hdfs:// in hdfs://host/prod: use s3://, abfss:// or gs://"):
        expect_conditional_writes("hdfs://host/prod")
    assert s3.name == "s3"


def test_reasons() -> None:
    chain = "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing GET\n   \x1b[31m↳\x1b[0m HTTP error\n    operation timed out\n"
    assert reason_of(OSError(chain)) == "Generic S3 error: operation timed out"
    assert reason_of(OSError("one\ntwo")) == "one"
    assert reason_of(OSError("")) == "OSError"


def test_credentials_of_a_profile(s3: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 finds them for data files, delta-rs for commits."""
    root = s3.new_root()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (tmp_path / "credentials").write_text("[grouplake]\naws_access_key_id = key\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "grouplake")
    # with an endpoint of its own, delta-rs otherwise looks for keys in variables only
    monkeypatch.setenv("AWS_FORCE_CREDENTIAL_LOAD", "true")
    expect_conditional_writes(root)
    merge_sorted(table(f"{root}/offsets"), write("a", offset=1), "")
    assert offsets(f"{root}/offsets") == {"a": 1}


def test_checkpoints_are_on_the_disk_of_the_driver(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path))
    store = TableStore(root)
    location = checkpoint_location(store, 7)
    assert location.startswith((tmp_path / "checkpoints").as_uri())
    assert location.endswith("-generation-7")
    objects = Objects(root)
    for key in ("generation-7/offsets/0", "generation-8/offsets/0", "offsets/0"):
        objects.write(f"_checkpoint/{key}", b"x")
    lines: list[str] = []
    remove_stale_checkpoints(store, 8, lines.append)
    assert lines == []
    assert sorted(objects.keys("_checkpoint")) == ["_checkpoint/generation-8/offsets/0", "_checkpoint/offsets/0"]
