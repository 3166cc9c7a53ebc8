"""The views of transactions have the same rows in Spark as in DataFusion."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from log_builder import Log
from pyspark.sql import SparkSession
from transaction_logs import NOW_MS, TransactionLog
from transaction_tables import TransactionTables

from coordinator_core.state.transaction_state import EMPTY, ONGOING, PREPARE_COMMIT
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

REASONS = {"timeout", "markers", "no_transaction"}


def texts(table: pa.Table) -> Iterable[str]:
    return (str([float(value) if isinstance(value, int) else value for value in row.values()]) for row in table.to_pylist())


@pytest.mark.long
def test_rows_in_spark(tmp_path: Path, spark: SparkSession) -> None:
    log, written = Log(3), TransactionLog()
    log.commit(0, 5, group="ledger", producer=7)
    log.marker(7)
    for partition, producer in enumerate((7, 8, 9)):
        log.commit(partition, 6, group="ledger", producer=producer)
    written.state("ledger-writer", ONGOING, producer_id=7, topics={"__consumer_offsets": (3,), "out": (0, 4)}, start_ms=NOW_MS)
    written.state("decided", PREPARE_COMMIT, producer_id=8, topics={"__consumer_offsets": (3,)}, start_ms=NOW_MS)
    written.state("idle", EMPTY, producer_id=10)
    written.state("two-phase", ONGOING, producer_id=11, topics={"out": (1,)}, start_ms=NOW_MS, timeout_ms=2_147_483_647)
    TransactionTables(tmp_path, written, at=at_ms(NOW_MS) + timedelta(hours=1)).apply(log)
    snapshot = Snapshot.open(str(tmp_path))
    for name in definitions.WRITE_ORDER:
        spark.read.format("delta").load(str(tmp_path / name)).createOrReplaceTempView(name)
    for name in ("hanging_transactions", "transactional_groups"):
        ours, theirs = snapshot.query(f"SELECT * FROM {name}"), spark.sql(definitions.spark_view_sql(name)).toArrow()
        assert ours.schema.names == theirs.schema.names
        assert sorted(texts(ours)) == sorted(texts(theirs)), name
    hanging = snapshot.query("SELECT reason FROM hanging_transactions")["reason"].to_pylist()
    # the two-phase transaction among them
    assert (set(hanging), len(hanging)) == (REASONS, 6)
    assert snapshot.query("SELECT * FROM transactional_groups").num_rows == 3
