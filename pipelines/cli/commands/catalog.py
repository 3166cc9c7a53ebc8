"""`grouplake catalog`: print a script that enters the tables and views into a catalog, or one that reads one batch."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import add_tables
from pipelines.runtime.errors import UsageError

_EXAMPLES = """examples:
  grouplake catalog --tables /data/groups --schema kafka_groups > groups.sql && spark-sql -f groups.sql
  grouplake catalog --tables s3://lake/groups --dialect unity --schema main.kafka_groups
  grouplake catalog --tables hdfs:///data/groups --dialect hive --schema kafka_groups
  grouplake catalog --tables /data/groups --dialect duckdb > groups.sql && duckdb -init groups.sql
  grouplake catalog --tables s3://lake/groups --dialect trino --schema delta.kafka_groups --as-of 12
  grouplake catalog --tables /data/groups --dialect spark --as-of newest

Tables at their newest versions:
spark:  CREATE TABLE … USING DELTA LOCATION and CREATE VIEW, for Spark with its own catalog or a Hive metastore
unity:  the same for Databricks, with the locations of an object store
hive:   external tables of Hive itself with Delta's connector; the views are for Spark SQL with Hive's catalog

Tables at the versions of one batch, the newest one or that of --as-of:
duckdb: temporary views; the script looks for the newest batch when it runs
trino:  registers the tables in a schema NAME_tables, and creates views in NAME; later runs need --replace
spark:  with --as-of: views, temporary ones without --schema

After `grouplake rebuild` the tables have other locations: with --replace the script drops the entries of the tables first. An
earlier script has entered external tables, whose files a catalog does not remove.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    dialects = ("spark", "hive", "unity", "duckdb", "trino")
    parser.add_argument("--dialect", choices=dialects, default="spark", help="default: spark")
    parser.add_argument(
        "--as-of", metavar="newest|TIME|BATCH", help="read one batch: the newest one, or that of an ISO 8601 time or a batch id"
    )
    parser.add_argument(
        "--replace", action="store_true", help="also drop the entries of tables: after a rebuild, for those of an earlier script"
    )
    parser.add_argument("--schema", metavar="NAME", help="create and use this schema, which may be CATALOG.NAME")


def _run(options: Namespace) -> int:
    from pipelines.query.catalog_script import DIALECTS, catalog_script

    if options.as_of is None and options.dialect in DIALECTS:
        print(catalog_script(options.tables, options.dialect, options.schema, is_replacing=options.replace))
        return 0
    # imports sqlglot, which takes half a second
    from pipelines.query.pinned_script import NEWEST, PINNED_DIALECTS, pinned_script

    if options.dialect not in PINNED_DIALECTS:
        raise UsageError(f"--as-of is not for {options.dialect}: use --dialect {', '.join(PINNED_DIALECTS)}")
    as_of = NEWEST if options.as_of is None else options.as_of
    print(pinned_script(options.tables, options.dialect, options.schema, as_of, is_replacing=options.replace))
    return 0


COMMAND = Command(
    "catalog",
    "print views and tables as SQL for Spark, Hive, Unity, DuckDB or Trino",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
)
