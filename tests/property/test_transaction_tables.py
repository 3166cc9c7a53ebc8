"""The tables of `__transaction_state` equal a fold of the whole log, wherever it is cut into batches."""

import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st
from transaction_logs import TransactionLog, folded, transaction_logs
from transaction_tables import TransactionTables

from coordinator_core.state.transaction_cache import LoggedTransaction
from pipelines.query.check import check
from pipelines.runtime.timestamps import to_time

_COLUMNS = (
    *("transactional_id", "state", "producer_id", "producer_epoch", "timeout_ms", "partitions", "start_timestamp"),
    *("last_update_timestamp", "log_partition", "log_offset", "record_timestamp"),
)

few = settings(max_examples=max(5, (settings.default or settings()).max_examples // 10), deadline=None)


def expected_row(logged: LoggedTransaction) -> dict[str, object]:
    metadata = logged.metadata
    return {
        "transactional_id": metadata.transactional_id,
        "state": metadata.state.label,
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
        "timeout_ms": metadata.timeout_ms,
        "partitions": set(metadata.partitions),
        "start_timestamp": to_time(metadata.start_ms),
        "last_update_timestamp": to_time(metadata.last_update_ms),
        "log_partition": logged.log_partition,
        "log_offset": logged.log_offset,
        "record_timestamp": to_time(logged.record_timestamp),
    }


def stored_rows(tables: TransactionTables) -> dict[str, dict[str, object]]:
    return {
        row["transactional_id"]: {
            **row,
            "partitions": {(each["topic"], number) for each in row["partitions"] for number in each["partitions"]},
        }
        for row in tables.rows(f"SELECT {', '.join(_COLUMNS)} FROM transactions")
    }


@few
@given(
    logs=st.tuples(transaction_logs(partition=0), transaction_logs(partition=3, names=("c", "d"))),
    cuts=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=3),
)
def test_the_tables_equal_a_fold_of_the_whole_log(
    logs: tuple[TransactionLog, TransactionLog], cuts: list[tuple[int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        tables = TransactionTables(root, *logs)
        for number in range(len(cuts) + 1):
            # the ends only grow
            reached = [max((30, *ends)) if number == len(cuts) else max(ends[: number + 1]) for ends in zip(*cuts, strict=True)]
            tables.source.limits = dict(zip((0, 3), reached or (30, 30), strict=True))
            tables.apply()
        expected = {key: value for log in logs for key, value in folded(log.records, "4")[0].transactions.items()}
        assert stored_rows(tables) == {name: expected_row(logged) for name, logged in expected.items()}
        batch = tables.store.last_batch()
        assert batch is not None
        assert batch.transaction_offsets == {log.partition: log.end for log in logs}
        assert check(root) == []
        (counted,) = tables.rows("SELECT sum(records) AS n FROM transaction_history")
        (read,) = tables.rows("SELECT sum(records_read) AS n FROM batches")
        assert (counted["n"] or 0) <= read["n"] == sum(len(log.records) for log in logs)
