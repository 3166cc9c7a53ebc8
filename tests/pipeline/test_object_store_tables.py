"""All tables in object stores, without Spark: commands, throttling, expiring credentials, long listings."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from crash_log import CrashLog
from dashboards import dashboard
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from log_builder import Log
from object_stores import StoreServer
from obstore.store import from_url
from store_proxy import CREDENTIALS, store_proxy, temporary_key
from store_roots import EXCLUSIVE, SERVERS, Servers, lead_to, running_servers
from table_contents import contents_of
from table_logs import change_table
from transaction_logs import NOW_MS, TransactionLog

from coordinator_core.log.columns import columns_of
from coordinator_core.reduction.transaction_reduction import TransactionReducer
from coordinator_core.state.era import Era
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, EMPTY, ONGOING
from pipelines.batch.apply import BatchApplier
from pipelines.batch.without_records import finish_batch
from pipelines.cli import main
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import AnotherWriter
from pipelines.runtime.phases import Phases
from pipelines.source.ranges import Offsets
from pipelines.source.transaction_log import TransactionRange
from pipelines.tables.store import TableStore
from pipelines.tables.table_files import files_of
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance, maintain
from pipelines.upkeep.rebuild.rebuild import delete_old, rebuild, return_to_old

pytestmark = [pytest.mark.store, pytest.mark.slow]

ERA = Era.named("4")
STEPS = 3
_COMMIT = b'{"commitInfo":{"timestamp":1,"operation":"WRITE","operationParameters":{}}}\n'


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with running_servers() as running:
        yield running


@pytest.fixture
def s3(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    lead_to(servers.of("s3"), monkeypatch)
    return servers.of("s3")


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    lead_to(servers.of(request.param), monkeypatch)
    return servers.of(request.param)


class TransactionSteps:
    """A log of `__transaction_state` in memory. A batch reads two records, in every process."""

    def __init__(self) -> None:
        log = TransactionLog()
        for transactional_id in ("kept", "hanging", "expired"):
            log.state(transactional_id, EMPTY, producer_id=len(transactional_id))
        log.state("hanging", ONGOING, producer_id=7, topics={"orders": (0, 1)}, start_ms=NOW_MS)
        log.tombstone("expired")
        log.state("kept", COMPLETE_COMMIT, producer_id=4, start_ms=NOW_MS)
        self._records = log.records

    def read(self, after: Offsets | None) -> TransactionRange | None:
        start = (after or {}).get(0, 0)
        records = self._records[start : start + 2]
        if not records:
            return None
        end = start + len(records)
        reducer = TransactionReducer(ERA.name, 0)
        reducer.add(columns_of(records, next_offset=end))
        return TransactionRange({0: end}, (reducer.finish(),))

    def read_if_reachable(self, after: Offsets | None) -> TransactionRange | None:
        return self.read(after)


def applier(root: str) -> BatchApplier:
    steps = TransactionSteps()
    return BatchApplier(TableStore(root), ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000, transactions=steps)


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[pa.Table]:
    """Change rows of a log with records for every table, one batch a step."""
    log = CrashLog(tmp_path_factory.mktemp("log"), 1)
    log.grow(STEPS)
    found, starts = [], dict.fromkeys(log.ends[0], 0)
    for step, ends in enumerate(log.ends):
        rows = []
        for partition, end in ends.items():
            one = Log(partition)
            one.records = [record for record in log.records(step) if record.partition == partition]
            rows.append(change_table(one, ERA, starts[partition], end))
        found.append(pa.concat_tables(rows))
        starts = dict(ends)
    return found


@pytest.fixture(scope="module")
def undisturbed(batches: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tables in a local folder."""
    root = tmp_path_factory.mktemp("local") / "prod"
    write(str(root), batches)
    return root


def write(root: str, batches: list[pa.Table]) -> None:
    TableStore(root).create()
    writing = applier(root)
    for rows in batches:
        writing.apply_rows(rows)


def apply_forever(writing: BatchApplier, rows: pa.Table) -> None:
    """Apply a batch that is applied already, with a check of the claim."""
    while True:
        writing.apply_rows(rows)
        writing.claim().expect_claim()


def contents(root: str) -> dict[str, list[str]]:
    return contents_of(Snapshot.open(root))


def test_commands_print_the_same_as_for_a_folder(
    server: StoreServer, batches: list[pa.Table], undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, conf = server.new_root(), tmp_path / "conf.toml"
    conf.write_text("[maintain]\nhistory_days = 100_000\n")
    write(root, batches)
    assert contents(root) == contents(str(undisturbed))
    commands = (
        ["sql", "SELECT * FROM committed_offsets ORDER BY 1, 2, 3", "--format", "csv"],
        ["sql", "SELECT transactional_id, state, topic, partition FROM hanging_transactions ORDER BY 1, 4", "--format", "csv"],
        ["lag", "--all-groups", "--state"],
        ["lag", "--all-groups", "--transactions"],
        ["check"],
    )
    printed = []
    for tables in (root, str(undisturbed)):
        for name, *arguments in commands:
            assert main([name, "--tables", tables, *arguments]) == 0
        printed.append(capsys.readouterr().out.replace(tables, "ROOT"))
    assert printed[0] == printed[1]
    assert "hanging,Ongoing,orders,1" in printed[0]
    assert main(["maintain", "--tables", root, "--conf", str(conf)]) == 0
    assert contents(root) == contents(str(undisturbed))
    with dashboard(f"prod={root}") as page:
        groups = page.get("/c/prod/groups.csv").text
    assert "p0-classic" in groups
    assert "p1-classic" in groups


@pytest.mark.parametrize("kind", EXCLUSIVE)
def test_two_jobs_race_for_the_tables(
    kind: str, servers: Servers, batches: list[pa.Table], undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both apply all batches at the same time, and start again when they are fenced."""
    lead_to(servers.of(kind), monkeypatch)
    root = servers.of(kind).new_root()
    TableStore(root).create()

    def job(_number: int) -> int:
        takeovers = 0
        while True:
            writing = applier(root)
            try:
                for rows in batches:
                    writing.apply_rows(rows)
                return takeovers
            except AnotherWriter:
                takeovers += 1
                if takeovers == 2:
                    # two jobs that always start again could take over from each other without an end
                    return takeovers

    with ThreadPoolExecutor(2) as threads:
        takeovers = list(threads.map(job, range(2)))
    if min(takeovers) == 2:
        applier_alone = applier(root)
        for rows in batches:
            applier_alone.apply_rows(rows)
    assert contents(root) == contents(str(undisturbed))
    assert check(root) == []


def test_a_throttled_store(
    s3: StoreServer, batches: list[pa.Table], undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = s3.new_root()
    with store_proxy(s3.endpoint, "throttles", tmp_path / "proxy") as proxy:
        lead_to(s3.behind(proxy.address), monkeypatch)
        write(root, batches)
        assert contents(root) == contents(str(undisturbed))
        maintain(root, Maintenance(history_days=100_000, vacuum_hours=1, target_file_mb=8), datetime.now(UTC), lambda _line: None)
        assert check(root) == []
        assert proxy.answers.count("503 SlowDown") > 100


def test_keys_that_expire_in_mid_run(
    s3: StoreServer,
    batches: list[pa.Table],
    undisturbed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = s3.new_root()
    write(root, batches[:1])
    with store_proxy(s3.endpoint, "expires", tmp_path / "proxy") as proxy:
        lead_to(s3.behind(proxy.address), monkeypatch)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", temporary_key(2))
        writing = applier(root)
        with pytest.raises(Exception, match="ExpiredToken"):
            apply_forever(writing, batches[0])
        assert main(["maintain", "--tables", root]) in (1, 2)
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("grouplake: ")
        assert "ExpiredToken" in line
    # a job with new keys continues
    lead_to(s3, monkeypatch)
    for rows in batches:
        applier(root).apply_rows(rows)
    assert contents(root) == contents(str(undisturbed))


def test_keys_of_a_container_are_renewed(
    s3: StoreServer, batches: list[pa.Table], undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = s3.new_root()
    with store_proxy(s3.endpoint, "expires", tmp_path / "proxy") as proxy:
        lead_to(s3.behind(proxy.address), monkeypatch)
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", proxy.address + CREDENTIALS)
        # with an endpoint of its own, delta-rs otherwise looks for keys in variables only
        monkeypatch.setenv("AWS_FORCE_CREDENTIAL_LOAD", "true")
        write(root, batches)
        assert contents(root) == contents(str(undisturbed))
        assert proxy.answers.count("200 key") > 2
        assert "400 ExpiredToken" not in proxy.answers


def test_a_rebuild_blocks_the_old_tables(server: StoreServer, batches: list[pa.Table]) -> None:
    """Beside a job that keeps running, which an object store does not prevent."""
    root = server.new_root()
    write(root, batches)
    before = contents(root)
    job = TablesWriter.claim(TableStore(root))
    job.begin()
    opened = DeltaTable(f"{root}/offsets")
    reader = TableStore(root)
    assert reader.last_batch() is not None
    rebuild(root, None, lambda _line: None)
    assert contents(root) == before
    for name in ("offsets", "batches", "quarantine"):
        for version in (None, 0, 1):
            with pytest.raises(DeltaError, match="Feature 'grouplake-rebuilt-see-_rebuilt-1' is not supported"):
                DeltaTable(f"{root}/{name}", version=version)
    with pytest.raises(DeltaError):
        opened.update_incremental()
    assert job.last is not None
    with pytest.raises(AnotherWriter, match="another job took over the tables"):
        job.commit("offsets", lambda _table, _stamp: pytest.fail("a table that was replaced is changed"))
    with pytest.raises(AnotherWriter, match="another job took over the tables"):
        finish_batch(job, job.last, Phases(datetime.now(UTC)), datetime.now(UTC))
    # a reader that has just looked at the pointer looks again
    assert reader.last_batch() == TableStore(root).last_batch()
    return_to_old(root, lambda _line: None)
    assert contents(root) == before
    rebuild(root, None, lambda _line: None)
    delete_old(root, lambda _line: None)
    assert not DeltaTable.is_deltatable(f"{root}/offsets")
    assert contents(root) == before


def test_listings_of_more_than_a_thousand_keys(server: StoreServer, batches: list[pa.Table], undisturbed: Path) -> None:
    """The log of a table without a checkpoint, and the files that `maintain` removes."""
    root, many = server.new_root(), 1_050
    write(root, batches[:1])
    objects = from_url(root)
    end = TableStore(root).table("quarantine").version()
    with ThreadPoolExecutor(8) as threads:
        commits = [f"quarantine/_delta_log/{end + number + 1:020}.json" for number in range(many)]
        list(threads.map(lambda key: obstore.put(objects, key, _COMMIT), commits))
        unused = [f"offsets/part-00000-{number:036}-c000.snappy.parquet" for number in range(many)]
        list(threads.map(lambda key: obstore.put(objects, key, b""), unused))
    assert TableStore(root).table("quarantine").version() == end + many
    writing = applier(root)
    for rows in batches:
        writing.apply_rows(rows)
    assert contents(root) == contents(str(undisturbed))
    table = TableStore(root).table("offsets")
    removed = table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len([path for path in removed if "part-00000-0000" in path]) == many
    assert contents(root) == contents(str(undisturbed))
    assert files_of(table.table_uri).threads == 16
