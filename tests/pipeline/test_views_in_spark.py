"""The views have the same rows in Spark as in DataFusion, on the tables of docs/sql.md."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from shop_day import day_tables

from pipelines.query.engine import Snapshot
from pipelines.tables import definitions

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

#: In `test_transaction_views_in_spark.py`.
OF_TRANSACTIONS = ("hanging_transactions", "transactional_groups")


@pytest.mark.long
def test_rows_in_spark(spark: SparkSession) -> None:
    root = day_tables()
    snapshot = Snapshot.open(root)
    for name in definitions.WRITE_ORDER:
        spark.read.format("delta").load(f"{root}/{name}").createOrReplaceTempView(name)
    for name in (each for each in definitions.VIEWS if each not in OF_TRANSACTIONS):
        spark.sql(definitions.spark_view_sql(name)).createOrReplaceTempView(name)
        ours, theirs = snapshot.query(f"SELECT * FROM {name}"), spark.table(name).toArrow()
        assert ours.num_rows > 0, name
        assert ours.schema.names == theirs.schema.names
        assert sorted(_texts(ours)) == sorted(_texts(theirs)), name


def _texts(table: pa.Table) -> Iterable[str]:
    return (str([_plain(value) for value in row.values()]) for row in table.to_pylist())


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
