"""`grouplake run` with Spark on object stores: micro-batches, files of executors, and two jobs that race."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_log import CrashLog
from object_stores import StoreServer
from real_runs import real_run
from store_roots import EXCLUSIVE, SERVERS, Servers, lead_to, running_servers
from table_contents import contents_of

from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.tables.object_stores import Objects

pytestmark = [pytest.mark.store, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with running_servers() as running:
        yield running


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    lead_to(servers.of(request.param), monkeypatch)
    return servers.of(request.param)


def contents(root: str) -> dict[str, list[str]]:
    return contents_of(Snapshot.open(root))


#: Samples have times of their own.
_NO_SAMPLES = "[lag]\ninterval_seconds = 0\n"
#: Executors write every batch.
_BULK = "[job]\nbulk_rows = 1\n"


def command(log: CrashLog, root: str, *, bulk: bool = False) -> list[str]:
    conf = log.directory.parent / f"bulk-{bulk}.toml"
    conf.write_text(_NO_SAMPLES + (_BULK if bulk else ""))
    return ["run", "--source", log.address, "--tables", root, "--conf", str(conf)]


def test_executors_write_the_same_as_in_a_folder(server: StoreServer, tmp_path: Path) -> None:
    """First an append to empty tables, then a merge."""
    log, root, local = CrashLog(tmp_path / "log", 1), server.new_root(), tmp_path / "tables"
    for step in range(2):
        log.grow()
        for number, tables in enumerate((root, str(local))):
            with real_run(command(log, tables, bulk=True), tmp_path / f"output-{step}-{number}") as run:
                assert run.wait() == 0, run.output
        assert contents(root) == contents(str(local))
        assert check(root) == []
    # the JVM writes nothing there: no checkpoint, no folder markers
    assert not [key for key in Objects(root).keys("") if key.startswith("_") or key.endswith(("/", "$"))]


@pytest.mark.parametrize(("kind", "is_bulk"), [("azure", False), ("azure", True), ("gcs", True)])
def test_a_job_takes_over_from_another(
    kind: str, is_bulk: bool, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first job is halted in the middle of a batch; it continues when the second is done."""
    lead_to(servers.of(kind), monkeypatch)
    log, root = CrashLog(tmp_path / "log", 1), servers.of(kind).new_root()
    log.grow()
    with real_run(command(log, root, bulk=is_bulk), tmp_path / "first", fault="after:offset_history=STOP") as first:
        assert first.wait_until(first.is_halted)
        with real_run(command(log, root, bulk=is_bulk), tmp_path / "second") as second:
            assert second.wait() == 0, second.output
        first.resume()
        assert first.wait() == 1
    assert first.output.splitlines()[-1] == (
        f"grouplake: another job took over the tables under {root} (writer epoch 2, ours is 1)"
    )
    with real_run(command(log, str(tmp_path / "alone")), tmp_path / "third") as alone:
        assert alone.wait() == 0, alone.output
    assert contents(root) == contents(str(tmp_path / "alone"))
    assert check(root) == []
    assert not Objects(root).keys("_checkpoint")


@pytest.mark.parametrize("kind", EXCLUSIVE)
def test_a_killed_job_leaves_nothing_that_stays(
    kind: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_to(servers.of(kind), monkeypatch)
    log, root = CrashLog(tmp_path / "log", 1), servers.of(kind).new_root()
    log.grow()
    with real_run(command(log, root), tmp_path / "killed", fault="after:offsets") as killed:
        assert killed.wait() == -9
    with real_run(command(log, root), tmp_path / "next") as following:
        assert following.wait() == 0, following.output
    assert check(root) == []
    with real_run(command(log, root), tmp_path / "idle") as idle:
        assert idle.wait() == 0, idle.output
    assert "up to date" in idle.output
