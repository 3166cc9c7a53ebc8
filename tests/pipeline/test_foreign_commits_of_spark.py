"""Statements of Spark on the tables: the commits that Delta Lake writes for them, and what the job does about each."""

import shutil
from pathlib import Path

import pytest
from created_tables import created_tables
from deltalake import DeltaTable
from log_builder import Log
from pyspark.sql import SparkSession
from table_contents import contents
from table_logs import change_table

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.query.check import check
from pipelines.runtime.errors import ForeignFeature
from pipelines.tables.store import TableStore
from pipelines.upkeep.rebuild.revert_features import revert_features

pytestmark = [pytest.mark.spark, pytest.mark.long]

ERA = Era.named("4")
Captured = pytest.CaptureFixture[str]


def whole_log() -> Log:
    log = Log(partition=3)
    for number in range(8):
        log.commit(number % 2, number, group="ab"[number % 2])
    return log


LOG = whole_log()


def applied(root: Path, start: int, end: int) -> None:
    applier = BatchApplier(TableStore(str(root)), ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000)
    applier.apply_rows(change_table(LOG, ERA, start, end))


@pytest.fixture(scope="module")
def first_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("spark_statements") / "tables"
    created_tables(root)
    applied(root, 0, 3)
    applied(root, 3, 6)
    return root


@pytest.fixture(scope="module")
def undisturbed(first_batches: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The contents after the last batch without any statement."""
    root = Path(shutil.copytree(first_batches, tmp_path_factory.mktemp("undisturbed") / "tables"))
    applied(root, 6, 8)
    return contents(root)


@pytest.fixture
def root(first_batches: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_batches, tmp_path / "tables"))


KEPT = (
    "OPTIMIZE {table}",
    pytest.param("OPTIMIZE {table} ZORDER BY (topic)", marks=pytest.mark.slow),
    "VACUUM {table}",
    "COMMENT ON TABLE {table} IS 'of the team'",
    pytest.param("ALTER TABLE {table} ALTER COLUMN topic COMMENT 'of the team'", marks=pytest.mark.slow),
    "ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'payments')",
    "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    pytest.param("ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '7')", marks=pytest.mark.slow),
)
REVERTED = {
    "DELETE FROM {table} WHERE group_id = 'a'": "it changes rows",
    "ALTER TABLE {table} ADD COLUMNS (note STRING)": "it changes the columns note",
    "ALTER TABLE {table} ADD CONSTRAINT positive CHECK (partition >= 0)": "it changes the properties delta.constraints.positive",
    "ALTER TABLE {table} SET TBLPROPERTIES ('delta.appendOnly' = 'true')": "it changes the properties delta.appendOnly",
}
FEATURES = {
    "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')": "deletionVectors",
    "ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')": "columnMapping",
}


def execute(spark: SparkSession, root: Path, statement: str) -> None:
    spark.sql(statement.format(table=f"delta.`{root / 'offsets'}`")).collect()


def goes_on(root: Path, undisturbed: dict[str, list[str]]) -> None:
    """The next batch gives what it gives without the statement."""
    applied(root, 6, 8)
    assert contents(root) == undisturbed
    assert check(str(root)) == []


@pytest.mark.parametrize("statement", KEPT)
def test_kept(statement: str, root: Path, undisturbed: dict[str, list[str]], spark: SparkSession, capsys: Captured) -> None:
    execute(spark, root, statement)
    table = DeltaTable(str(root / "offsets"))
    left = table.metadata().configuration, table.metadata().description, table.schema().to_json()
    capsys.readouterr()
    goes_on(root, undisturbed)
    assert "reverted" not in capsys.readouterr().err
    table = DeltaTable(str(root / "offsets"))
    assert (table.metadata().configuration, table.metadata().description, table.schema().to_json()) == left


@pytest.mark.parametrize("statement", REVERTED)
def test_reverted(statement: str, root: Path, undisturbed: dict[str, list[str]], spark: SparkSession, capsys: Captured) -> None:
    execute(spark, root, statement)
    capsys.readouterr()
    goes_on(root, undisturbed)
    assert capsys.readouterr().err.endswith(f": {REVERTED[statement]}\n")


@pytest.mark.parametrize("statement", FEATURES)
def test_features(statement: str, root: Path, undisturbed: dict[str, list[str]], spark: SparkSession) -> None:
    execute(spark, root, statement)
    # with deletion vectors, these are marks in files that stay
    execute(spark, root, "DELETE FROM {table} WHERE partition = 0")
    with pytest.raises(ForeignFeature, match=rf"\({FEATURES[statement]}\) since version \d+ \(SET TBLPROPERTIES by "):
        applied(root, 6, 8)
    assert revert_features(str(root), lambda _line: None) == ["offsets"]
    goes_on(root, undisturbed)
    # and Spark reads it as an ordinary table
    frame = spark.read.format("delta").load(str(root / "offsets"))
    assert frame.count() == DeltaTable(str(root / "offsets")).to_pyarrow_table().num_rows
