"""The statements that `grouplake sql` runs; all others are rejected in any disguise."""

from pathlib import Path

import pytest
from log_builder import Log
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.query.engine import Snapshot
from pipelines.query.statement import is_reading
from pipelines.runtime.errors import UsageError

COPY = "COPY (SELECT 1 AS a) TO '{file}'"

#: Each of these writes a file or a table, executes the statement that it claims to explain, or would in a similar dialect.
DOING = (
    COPY,
    f"/* SELECT */ {COPY}",
    f"/* /* */ SELECT */ {COPY}",
    f"/*/* */ SELECT 1 */ {COPY}",
    f"-- SELECT\n{COPY}",
    "--\rCOPY (\nSELECT 1 AS a) TO '{file}'",
    "--\u2028COPY (\nSELECT 1 AS a) TO '{file}'",
    f"EXPLAIN ANALYZE {COPY}",
    f"EXPLAIN (ANALYZE true) {COPY}",
    f"EXPLAIN /* /* */ */ ANALYZE {COPY}",
    f"DESCRIBE ANALYZE {COPY}",
    f"EXPLAIN {COPY}",
    "SELECT E'\\'' INTO x --'",
    "WITH x AS (SELECT E'\\'' AS a) INSERT INTO topic_ids SELECT * FROM topic_ids --'",
    "SELECT $$ ' $$ AS a INTO x --'",
    "SELECT q'[ ' ]' AS a INTO x --'",
    "SELECT `'` AS a INTO x --'",
    "WITH x AS (SELECT 1) DELETE FROM groups",
    "WITH x AS (SELECT 1) UPDATE groups SET state = 'x'",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE VIEW x AS SELECT 1",
    "SET datafusion.execution.batch_size = 1",
    "PREPARE p AS SELECT 1",
    "EXPLAIN EXECUTE p",
    "TRUNCATE groups",
    "ſELECT 1; DROP TABLE groups",
    "",
    "-- SELECT",
    "'SELECT'",
)

#: Places from which other engines read files.
FILES = (
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    'SELECT * FROM "file:///etc/passwd"',
    'SELECT * FROM default.public."/etc/passwd"',
    "DESCRIBE '/etc/passwd'",
    *(
        f"SELECT * FROM {function}('/etc/passwd')"
        for function in ("read_csv", "read_parquet", "read_json", "csv", "parquet_metadata", "glob", "file", "delta_scan")
    ),
    "SELECT * FROM information_schema.tables",
    "SHOW TABLES",
    f"SELECT 1; {COPY}",
    f"SELECT '-- ' AS a; {COPY} --'",
)

READING = (
    "SELECT 1",
    "(SELECT 1)",
    "/* it's */ SELECT 1 -- it's\r\n + 1",
    "SELECT ' INTO ' AS \"into\", 'it''s', 'a\\' AS b -- INTO",
    "SELECT count(*) AS \"update\" FROM group_records WHERE key = X'0002'",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "VALUES (1), (2)",
    "EXPLAIN SELECT * FROM groups",
    "DESCRIBE groups",
    "SELECT interval '1 day'",
)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    log, root = Log(), str(tmp_path_factory.mktemp("tables"))
    log.commit(0, 5, group="g")
    applied(log, Era.named("4"), [], root)
    return Snapshot.open(root)


@pytest.mark.parametrize("sql", [*DOING, *FILES])
def test_what_does_anything_or_reads_files_is_refused(sql: str, snapshot: Snapshot, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        snapshot.query(sql.format(file=tmp_path / "out.csv"))
    assert sql in FILES or "only queries are allowed here" in str(refused.value)
    assert "root:" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sql", READING)
def test_queries_run(sql: str, snapshot: Snapshot) -> None:
    assert is_reading(sql)
    assert snapshot.query(sql).num_columns


def test_long_names_take_linear_time() -> None:
    """A search for the end of the text before each string would take hours."""
    name = "x" * 1_000_000
    assert is_reading(f"SELECT '{name}', '{name}'")
    assert not is_reading(f"SELECT '{name}', E'{name}'")
