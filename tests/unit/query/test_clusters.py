"""Several folders of tables in one statement."""

import re
import shutil
from pathlib import Path

import pytest
from log_builder import Log
from table_logs import applied
from two_clusters import ERA, two_clusters

from pipelines.alerts.alert_store import AlertStore
from pipelines.query.clusters import ClusterSnapshot, open_snapshot, queried_roots
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return two_clusters(tmp_path_factory.mktemp("clusters"))


@pytest.fixture
def snapshot(roots: dict[str, str]) -> ClusterSnapshot:
    return ClusterSnapshot.open(roots)


def test_a_schema_per_cluster(snapshot: ClusterSnapshot) -> None:
    sql = """
        SELECT e.group_id, e.committed_offset AS east, w.committed_offset AS west
        FROM east.committed_offsets e JOIN west.committed_offsets w USING (group_id, topic, partition)"""
    assert snapshot.query(sql).to_pylist() == [{"group_id": "billing", "east": 5, "west": 7}]


def test_plain_names_have_the_rows_of_all_clusters(snapshot: ClusterSnapshot) -> None:
    sql = "SELECT cluster, group_id, state FROM groups ORDER BY cluster, group_id"
    assert [tuple(row.values()) for row in snapshot.query(sql).to_pylist()] == [
        ("east", "audit", "Stable"),
        ("east", "billing", "Empty"),
        ("west", "billing", "Empty"),
    ]
    assert snapshot.query("SELECT * FROM groups").schema.names[0] == "cluster"
    batches = "SELECT cluster, max(batch_id) AS batch_id FROM batches GROUP BY cluster ORDER BY cluster"
    assert [tuple(row.values()) for row in snapshot.query(batches).to_pylist()] == [("east", 1), ("west", 0)]


@pytest.mark.parametrize("name", [*definitions.WRITE_ORDER, *definitions.VIEWS])
def test_every_table_and_view_has_both_forms(name: str, snapshot: ClusterSnapshot, roots: dict[str, str]) -> None:
    counts = {cluster: Snapshot.open(root).query(f"SELECT * FROM {name}").num_rows for cluster, root in roots.items()}
    for cluster, count in counts.items():
        assert snapshot.query(f"SELECT * FROM {cluster}.{name}").num_rows == count
    assert snapshot.query(f"SELECT * FROM {name}").num_rows == sum(counts.values())


def test_alerts_of_all_clusters(tmp_path: Path) -> None:
    roots = two_clusters(tmp_path)
    AlertStore(roots["east"])
    assert "alerts" not in ClusterSnapshot.open(roots).tables
    assert ClusterSnapshot.open(roots).query("SELECT * FROM east.alerts").num_rows == 0
    with pytest.raises(UsageError, match=r"cluster west: no table alerts under .*: `grouplake alerts` creates it"):
        ClusterSnapshot.open(roots).query("SELECT * FROM alerts")
    AlertStore(roots["west"])
    assert ClusterSnapshot.open(roots).query("SELECT * FROM alerts").schema.names[:2] == ["cluster", "fingerprint"]


def test_a_condition_on_the_cluster_reads_no_file_of_another(snapshot: ClusterSnapshot, roots: dict[str, str]) -> None:
    plan = str(snapshot.query("EXPLAIN SELECT group_id FROM offsets WHERE cluster = 'east'").to_pylist())
    read = [re.escape(root.strip("/")) in re.escape(plan) for root in roots.values()]
    assert read == [True, False]


def test_every_cluster_has_its_batch_as_of_a_time(roots: dict[str, str]) -> None:
    at = Snapshot.open(roots["west"]).batch.finished_at
    then = ClusterSnapshot.open(roots, at.isoformat())
    assert {name: batch.batch_id for name, batch in then.batches.items()} == {"east": 1, "west": 0}
    with pytest.raises(UsageError, match="batch 0 of 2 clusters: each cluster has its own batch ids; use a time instead"):
        ClusterSnapshot.open(roots, "0")
    assert ClusterSnapshot.open({"east": roots["east"]}, "0").batches["east"].batch_id == 0


def test_a_snapshot_keeps_the_batch_of_each_cluster(tmp_path: Path) -> None:
    log = Log()
    log.commit(0, 5, group="g")
    for name in ("a", "b"):
        applied(log, ERA, [], str(tmp_path / name))
    before = ClusterSnapshot.open({name: str(tmp_path / name) for name in ("a", "b")})
    log.commit(1, 5, group="g")
    applied(log, ERA, [1], str(tmp_path / "b"))
    count = "SELECT cluster, count(*) AS n FROM offsets GROUP BY cluster ORDER BY cluster"
    assert [row["n"] for row in before.query(count).to_pylist()] == [1, 1]
    after = ClusterSnapshot.open({name: str(tmp_path / name) for name in ("a", "b")})
    assert [row["n"] for row in after.query(count).to_pylist()] == [1, 2]


def test_a_name_that_needs_quotes(roots: dict[str, str]) -> None:
    snapshot = open_snapshot({"eu-west": roots["east"], "4": roots["west"]})
    assert snapshot.query('SELECT * FROM "eu-west".groups').num_rows == 2
    assert snapshot.query('SELECT * FROM "4".assignments').num_rows == 0
    assert snapshot.query("SELECT DISTINCT cluster FROM groups").num_rows == 2


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM north.lag", "no cluster 'north': use one of east, west"),
        ("SELECT * FROM east.lags", "cluster east: no table or view 'lags': did you mean lag"),
        ("SELECT * FROM lags", "no table or view 'lags': did you mean lag"),
        ("SELECT nothing FROM groups", "query failed: .*nothing"),
        ("CREATE VIEW east.mine AS SELECT 1", "only queries are allowed here"),
        ("SET datafusion.catalog.default_schema = 'east'", "only queries are allowed here"),
    ],
)
def test_errors_name_the_cluster(sql: str, message: str, snapshot: ClusterSnapshot) -> None:
    with pytest.raises(UsageError, match=message):
        snapshot.query(sql)
    assert snapshot.query("SELECT count(*) AS n FROM groups").to_pylist() == [{"n": 3}]


def test_a_cluster_without_a_table_is_named(roots: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = ClusterSnapshot.open(roots)
    older = {name: version for name, version in snapshot.batches["west"].versions.items() if name != "lag"}
    monkeypatch.setattr(type(snapshot._of_cluster["west"]), "tables", property(_tables_of_batch))
    object.__setattr__(snapshot.batches["west"], "versions", older)
    missing = r"cluster west: batch 0 under .* has no table lag: an earlier version of Grouplake wrote it"
    for sql in ("SELECT * FROM lag", "SELECT * FROM west.lag"):
        with pytest.raises(UsageError, match=missing):
            snapshot.query(sql)
    assert snapshot.query("SELECT * FROM east.lag").num_rows == 0


def _tables_of_batch(snapshot: Snapshot) -> tuple[str, ...]:
    return (*snapshot.batch.versions, "batches")


def test_a_removed_file_is_reported(roots: dict[str, str], tmp_path: Path) -> None:
    copied = shutil.copytree(roots["west"], tmp_path / "west")
    for file in (copied / "offsets").glob("*.parquet"):
        file.unlink()
    with pytest.raises(UsageError, match=r"a batch of east: 1, west: 0 can no longer be read"):
        ClusterSnapshot.open({"east": roots["east"], "west": str(copied)}).query("SELECT * FROM offsets")


@pytest.mark.parametrize(
    ("given", "roots"),
    [
        (["/data/groups"], {"": "/data/groups"}),
        (["./a=b"], {"": "./a=b"}),
        (["s3://bucket/date=today"], {"": "s3://bucket/date=today"}),
        (["east=/data/e"], {"east": "/data/e"}),
        (["east=/data/e", "eu-west=s3://b/w"], {"east": "/data/e", "eu-west": "s3://b/w"}),
        (["east=/data/e", "s3://b/west/"], {"east": "/data/e", "west": "s3://b/west/"}),
    ],
)
def test_folders_and_their_names(given: list[str], roots: dict[str, str]) -> None:
    assert queried_roots(given) == roots


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["east=/e", "/w w"], "invalid cluster name 'w w': use 1–100 letters, digits, '_' or '-', as in --tables NAME=DIR"),
        (["east=/e", "east=/w"], "two folders for cluster 'east', /e and /w: name them with --tables NAME=DIR"),
        (["eu.west=/e"], "invalid cluster name 'eu.west'"),
        (["=/e"], "invalid cluster name ''"),
        (["/data/lag", "/data/east"], "invalid cluster name 'lag'"),
        (["public=/e"], "invalid cluster name 'public': it is a table, a view or a schema"),
        (["lag=/e"], "invalid cluster name 'lag'"),
        (["east="], "cluster 'east' has no folder"),
    ],
)
def test_invalid_names_of_clusters(given: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        ClusterSnapshot.open(queried_roots(given))
