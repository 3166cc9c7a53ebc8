"""`grouplake catalog`: print a script that enters the tables and views into a catalog."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import add_tables

_EXAMPLES = """examples:
  grouplake catalog --tables /data/groups --schema kafka_groups > groups.sql && spark-sql -f groups.sql
  grouplake catalog --tables s3://lake/groups --dialect unity --schema main.kafka_groups
  grouplake catalog --tables hdfs:///data/groups --dialect hive --schema kafka_groups

spark: CREATE TABLE … USING DELTA LOCATION and CREATE VIEW, for Spark with its own catalog or a Hive metastore
unity: the same for Databricks, with the locations of an object store
hive:  external tables of Hive itself with Delta's connector; the views are for Spark SQL with Hive's catalog

After `grouplake rebuild` the tables have other locations: with --replace the script drops the entries of the tables first. An
earlier script has entered external tables, whose files a catalog does not remove.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    parser.add_argument("--dialect", choices=("spark", "hive", "unity"), default="spark", help="default: spark")
    parser.add_argument(
        "--replace", action="store_true", help="also print DROP TABLE: after a rebuild, for tables that an earlier script entered"
    )
    parser.add_argument("--schema", metavar="NAME", help="create and use this schema, which may be CATALOG.NAME")


def _run(options: Namespace) -> int:
    from pipelines.query.catalog_script import catalog_script

    print(catalog_script(options.tables, options.dialect, options.schema, is_replacing=options.replace))
    return 0


COMMAND = Command(
    "catalog",
    "print CREATE TABLE and CREATE VIEW for Spark, Hive or Unity",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
)
