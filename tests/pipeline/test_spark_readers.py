"""Readers with Spark: `grouplake.register`, and the script of `grouplake catalog`."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from log_builder import Log
from markdown_pages import ROOT
from patience import LIMIT_SECONDS
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from recipes import STREAM, Recipe, recipes
from table_logs import applied
from two_clusters import ERA, two_clusters

import grouplake
from pipelines.alerts.alert_store import AlertStore
from pipelines.cli import main
from pipelines.job.spark.session import DELTA
from pipelines.query.script import split
from pipelines.tables import definitions
from pipelines.tables.store import TableStore
from pipelines.upkeep.rebuild.rebuild import rebuild

# Spark reads the log of each table in a job of its own
pytestmark = pytest.mark.spark

TABLES = (*definitions.WRITE_ORDER, *definitions.ALERTS)
NAMES = (*TABLES, *definitions.VIEWS)
READING = [recipe for recipe in recipes(is_spark=True) if recipe.title != STREAM]
#: Tables of each kind: merged, replaced, appended, that of alerts, and the one without a version in its own rows; views of one
#: table, of several and of another view. `test_views_in_spark.py` compares the rows of every view.
COMPARED = (
    *("members", "lag", "offset_history", "alert_history", "batches"),
    *("committed_offsets", "resets", "lag_by_group", "ownership"),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    east = two_clusters(tmp_path_factory.mktemp("clusters"))["east"]
    transition = {"at": datetime(2026, 3, 1, tzinfo=UTC), "change": "firing", "rule": "Lag", "labels": [("group", "billing")]}
    AlertStore(east).commit({}, [transition], 0)
    return east


def plain(value: Any) -> Any:
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def rows(spark: SparkSession, name: str) -> list[str]:
    found = spark.table(name).toArrow()
    return sorted(str({name: plain(value) for name, value in row.items()}) for row in found.to_pylist())


def ours(tables: grouplake.Tables, name: str) -> list[str]:
    found = tables.table(name).to_arrow().to_pylist()
    return sorted(str({name: plain(value) for name, value in row.items()}) for row in found)


@pytest.mark.long
@pytest.mark.parametrize(("prefix", "as_of"), [("", None), pytest.param("east_", 0, marks=pytest.mark.slow)])
def test_registered_views_have_the_rows_of_the_batch(prefix: str, as_of: int | None, root: str, spark: SparkSession) -> None:
    session = spark.newSession()
    names = grouplake.register(session, root, as_of=as_of, prefix=prefix)
    assert names == tuple(f"{prefix}{name}" for name in NAMES)
    assert {view.name for view in session.catalog.listTables() if view.isTemporary} == set(names)
    tables = grouplake.open(root, as_of=as_of)
    for name in COMPARED:
        assert rows(session, f"{prefix}{name}") == ours(tables, name), name


@pytest.mark.long
def test_registered_views_keep_their_batch(tmp_path: Path, spark: SparkSession) -> None:
    session, log = spark.newSession(), Log()
    log.commit(0, 5, group="g")
    applied(log, ERA, [], str(tmp_path), again=False)
    grouplake.register(session, tmp_path)
    frame = session.table("committed_offsets")
    log.commit(1, 5, group="g")
    applied(log, ERA, [1], str(tmp_path))
    for name in ("offsets", "committed_offsets", "offset_history", "batches"):
        assert session.table(name).count() == 1, name
    grouplake.register(session, tmp_path)
    assert [session.table(name).count() for name in ("offsets", "committed_offsets", "offset_history", "batches")] == [2, 2, 2, 2]
    assert frame.count() == 1


def test_an_invalid_prefix(root: str, spark: SparkSession) -> None:
    with pytest.raises(grouplake.GrouplakeError, match="invalid prefix 'a b': use letters, digits and '_'"):
        grouplake.register(spark, root, prefix="a b")


@pytest.mark.slow
def test_a_session_without_delta_is_reported(root: str) -> None:
    program = f"""
from pyspark.sql import SparkSession
import grouplake
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    grouplake.register(spark, {root!r})
except grouplake.GrouplakeError as error:
    print("reported:", error)
spark.stop()
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True)
    (line,) = [line for line in found.stdout.splitlines() if line.startswith("reported:")]
    assert f"Spark cannot read the tables under {root} (" in line
    assert "Failed to find the data source: delta" in line
    assert line.endswith("the session needs Delta Lake, see docs/python.md")


@pytest.mark.long
@pytest.mark.parametrize("recipe", READING, ids=lambda recipe: str(recipe.title))
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_recipes_with_spark(recipe: Recipe, root: str, spark: SparkSession) -> None:
    recipe.run(root, {"spark": spark.newSession()})


def test_the_documented_delta_is_ours() -> None:
    (package,) = DELTA[1]
    assert package in (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


@pytest.fixture
def schema(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    # with a location of its own, so that the test leaves no warehouse folder
    spark.sql(f"CREATE SCHEMA kafka_groups LOCATION '{(tmp_path / 'warehouse').as_uri()}'")
    yield "kafka_groups"
    spark.sql("DROP SCHEMA kafka_groups CASCADE")


def is_about(statement: str, names: set[str]) -> bool:
    """Whether a statement of a catalog script is about one of these tables and views, or about the schema."""
    created = re.match(r"(?:CREATE TABLE IF NOT EXISTS|CREATE OR REPLACE VIEW|DROP TABLE IF EXISTS) `?(\w+)", statement)
    return created is None or created[1] in names


def script(root: str, dialect: str, schema: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """The statements of a script of `grouplake catalog`."""
    capsys.readouterr()
    assert main(["catalog", "--tables", root, "--dialect", dialect, "--schema", schema, *options]) == 0
    steps = split(capsys.readouterr().out)
    assert steps.rest == ""
    return [step.text for step in steps.steps]


@pytest.mark.long
def test_the_catalog_script_runs_in_spark(
    root: str, schema: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    statements = script(root, "spark", schema, capsys)
    versions = {name: DeltaTable(f"{root}/{name}").version() for name in TABLES}
    session = spark.newSession()
    # all statements, and those of each kind once more
    for statement in (*statements, *(each for each in statements if is_about(each, {"members", "batches", "resets"}))):
        session.sql(statement)
    assert {name: DeltaTable(f"{root}/{name}").version() for name in TABLES} == versions
    tables = grouplake.open(root)
    for name in COMPARED:
        assert rows(session, f"{schema}.{name}") == ours(tables, name), name
    catalog = {each.name: each.description for each in session.catalog.listTables(schema)}
    assert set(catalog) == set(NAMES)
    assert all(catalog.values())
    for name in COMPARED:
        comments = {column.name: column.description for column in session.catalog.listColumns(f"{schema}.{name}")}
        if name in definitions.VIEWS:
            assert any(comments.values()), name
        else:
            assert comments == definitions.table(name).comments, name


@pytest.mark.long
def test_the_views_for_a_catalog_of_hive_run_in_spark(
    root: str, schema: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    session = spark.newSession()
    for statement in script(root, "hive", schema, capsys):
        # Spark has no tables of storage handlers
        if "STORED BY" not in statement:
            session.sql(statement)
    assert {each.name for each in session.catalog.listTables(schema)} == set(definitions.VIEWS)
    tables = grouplake.open(root)
    for name in (each for each in COMPARED if each in definitions.VIEWS):
        assert rows(session, f"{schema}.{name}") == ours(tables, name), name


#: Views and what they read: a merged and a replaced table, histories of records and of samples, `batches`, and one of alerts.
OF_ONE_BATCH = ("offsets", "groups", "lag", "offset_history", "lag_history", "batches", "alert_history", "committed_offsets")


@pytest.mark.long
@pytest.mark.parametrize(("as_of", "names"), [("0", OF_ONE_BATCH), pytest.param("newest", NAMES, marks=pytest.mark.slow)])
def test_the_script_of_one_batch_runs_in_spark(
    as_of: str, names: tuple[str, ...], root: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    session = spark.newSession()
    capsys.readouterr()
    assert main(["catalog", "--tables", root, "--dialect", "spark", "--as-of", as_of]) == 0
    found = {re.findall(r"VIEW (\w+)", step.text)[0]: step.text for step in split(capsys.readouterr().out).steps}
    assert tuple(found) == NAMES
    for name in (each for each in NAMES if each in names):
        session.sql(found[name])
    tables = grouplake.open(root, as_of=None if as_of == "newest" else as_of)
    for name in names:
        assert rows(session, name) == ours(tables, name), name


@pytest.mark.slow
def test_the_script_of_one_batch_makes_views_of_a_schema(
    root: str, schema: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    statements = script(root, "spark", schema, capsys, "--as-of", "0")
    versions = {name: DeltaTable(f"{root}/{name}").version() for name in TABLES}
    session = spark.newSession()
    for _ in range(2):
        for statement in statements:
            session.sql(statement)
    assert {name: DeltaTable(f"{root}/{name}").version() for name in TABLES} == versions
    assert {each.name for each in session.catalog.listTables(schema)} == set(NAMES)
    tables, reader = grouplake.open(root, as_of=0), spark.newSession()
    for name in NAMES:
        assert rows(reader, f"{schema}.{name}") == ours(tables, name), name


@pytest.mark.long
def test_a_rebuild_ends_reads_by_path_and_of_a_catalog(
    root: str, schema: str, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(root, tmp_path / "groups")
    session, names = spark.newSession(), ("offset_history", "offsets", "batches")
    # the view reads `groups`, too
    wanted = {*names, "groups", "committed_offsets"}
    for statement in script(str(copy), "spark", schema, capsys):
        if is_about(statement, wanted):
            session.sql(statement)
    assert {each.name for each in session.catalog.listTables(schema)} == wanted
    for name in names:
        # the session has the logs in its cache
        assert session.table(f"{schema}.{name}").count() == session.read.format("delta").load(f"{copy}/{name}").count() > 0
    rebuild(str(copy), None, lambda _line: None)
    versions = grouplake.open(copy).sql("SELECT versions FROM batches ORDER BY batch_id DESC LIMIT 1").to_arrow()
    versions = dict(versions["versions"][0].as_py())
    refused = "grouplake-rebuilt-see-_rebuilt-1"
    for name in names:
        for each in (session, spark.newSession()):
            with pytest.raises((PySparkException, Py4JJavaError), match=refused):
                each.read.format("delta").load(f"{copy}/{name}").count()
            with pytest.raises((PySparkException, Py4JJavaError), match=refused):
                each.table(f"{schema}.{name}").count()
        for version in {versions.get(name, 0), 0, 9, 10}:
            with pytest.raises((PySparkException, Py4JJavaError), match=refused):
                session.read.format("delta").option("versionAsOf", version).load(f"{copy}/{name}").count()
    with pytest.raises((PySparkException, Py4JJavaError), match=refused):
        session.table(f"{schema}.committed_offsets").count()
    for statement in script(str(copy), "spark", schema, capsys, "--replace"):
        if is_about(statement, wanted):
            session.sql(statement)
    tables = grouplake.open(copy)
    for name in sorted(wanted):
        assert rows(session, f"{schema}.{name}") == ours(tables, name), name
    assert DeltaTable(TableStore(str(copy)).path("offsets")).version() == versions["offsets"]
