"""Scripts of `grouplake catalog` for Databricks and Hive, parsed as their SQL: statements, names, columns and locations."""

import re
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp
from two_clusters import two_clusters

from pipelines.alerts.alert_store import AlertStore
from pipelines.query.catalog_script import catalog_script
from pipelines.query.engine import Snapshot
from pipelines.tables import definitions

TABLES = (*definitions.WRITE_ORDER, *definitions.ALERTS)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    east = two_clusters(tmp_path_factory.mktemp("clusters"))["east"]
    AlertStore(east)
    return east


def created(script: str, dialect: str) -> dict[str, dict[str, exp.Create]]:
    """Kind → name → statement. A statement that the dialect does not have would be an `exp.Command`."""
    found: dict[str, dict[str, exp.Create]] = {}
    for statement in sqlglot.parse(script, dialect=dialect):
        if isinstance(statement, exp.Use):
            continue
        assert isinstance(statement, exp.Create), statement
        table = statement.this.find(exp.Table)
        found.setdefault(str(statement.args["kind"]), {})[table.name or table.sql()] = statement
    return found


def location(statement: exp.Create) -> str:
    found = statement.find(exp.LocationProperty)
    assert found is not None
    return str(found.this.this)


def columns(statement: exp.Create) -> list[str]:
    return [column.name for column in statement.this.expressions]


def expect_views(views: dict[str, exp.Create], root: str) -> None:
    snapshot = Snapshot.open(root)
    assert tuple(views) == definitions.VIEWS
    for name, view in views.items():
        assert columns(view) == snapshot.query(f"SELECT * FROM {name} LIMIT 0").schema.names, name


def test_the_script_for_unity_has_every_table_and_view(root: str) -> None:
    script = catalog_script(root, "unity", "main.kafka_groups")
    found = created(script, "databricks")
    assert script.count("\nUSE main.kafka_groups;\n") == 1
    assert list(found) == ["SCHEMA", "TABLE", "VIEW"]
    assert tuple(found["TABLE"]) == TABLES
    for name, table in found["TABLE"].items():
        assert location(table) == Path(root, name).as_uri()
        assert "USING DELTA" in table.sql(dialect="databricks")
    expect_views(found["VIEW"], root)
    for name, view in found["VIEW"].items():
        read = {table.name for table in view.expression.find_all(exp.Table)} - {cte.alias for cte in view.find_all(exp.CTE)}
        assert read <= {*TABLES, *definitions.VIEWS}, name


def test_the_script_for_hive_has_the_columns_of_every_table(root: str) -> None:
    found = created(catalog_script(root, "hive", "kafka_groups"), "hive")
    assert tuple(found["TABLE"]) == TABLES
    for name, table in found["TABLE"].items():
        definition = definitions.table(name)
        assert columns(table) == definition.schema.names
        comments = {column.name: column.find(exp.CommentColumnConstraint).this.this for column in table.this.expressions}
        assert comments == definition.comments
        assert location(table) == Path(root, name).as_uri()
        assert "io.delta.hive.DeltaStorageHandler" in table.sql(dialect="hive")


def test_the_views_for_a_catalog_of_hive_read_the_tables_by_their_locations(root: str) -> None:
    script = catalog_script(root, "hive", "kafka_groups")
    tables, note, views = script.partition("-- The statements above are for Hive.")
    assert "CREATE OR REPLACE VIEW" not in tables
    assert note
    found = created(note + views, "spark")["VIEW"]
    expect_views(found, root)
    for name, view in found.items():
        read = {(table.db, table.name) for table in view.expression.find_all(exp.Table)}
        named = {cte.alias for cte in view.find_all(exp.CTE)}
        locations = {("delta", Path(root, table).as_uri()) for table in TABLES}
        plain = {table for schema, table in read - locations if not schema}
        assert plain <= {*named, *definitions.VIEWS}, name
        assert not {schema for schema, _ in read - locations if schema}, name


@pytest.mark.parametrize("dialect", ["spark", "hive", "unity"])
def test_a_script_that_replaces_drops_each_table_before_it_creates_it(dialect: str, root: str) -> None:
    plain, script = catalog_script(root, dialect, None), catalog_script(root, dialect, None, is_replacing=True)
    statement = r"^(DROP TABLE IF EXISTS|CREATE (?:EXTERNAL )?TABLE IF NOT EXISTS) `?(\w+)`?"
    found = [(kind.split()[0], name) for kind, name in re.findall(statement, script, re.MULTILINE)]
    assert found == [(kind, name) for name in TABLES for kind in ("DROP", "CREATE")]
    assert re.sub(r"DROP TABLE IF EXISTS `\w+`;\n\n", "", script) == plain
    assert sum(isinstance(each, exp.Drop) for each in sqlglot.parse(script, dialect="spark")) == len(TABLES)
