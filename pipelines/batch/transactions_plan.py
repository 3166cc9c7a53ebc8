"""Plan of the writes of `transactions` and `transaction_history`, from new records of `__transaction_state`.

Only the last record of an id in the batch decides its state, so the work is bounded by the ids, and the history has a row per id
and batch with counts of the records that were replaced. The rows are planned in columns.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.reduction.reduced_transactions import COUNTS, REDUCED_TRANSACTIONS, TransactionReduction
from coordinator_core.state.transaction_metadata import NO_PRODUCER_ID
from coordinator_core.state.transaction_state import DEAD, TransactionState
from pipelines.batch.context import BatchContext
from pipelines.batch.groups_plan import as_table
from pipelines.batch.placement import Placement, at_places
from pipelines.runtime.time_columns import times_of
from pipelines.runtime.timestamps import to_time
from pipelines.source.transaction_log import TransactionRange
from pipelines.tables import definitions
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite, source_schema

_PREVIOUS = ("state", "producer_id", "producer_epoch")
_HISTORY = definitions.table("transaction_history").schema

#: State in `transaction_history` of records in a log partition that does not speak for the id. They decide nothing.
ELSEWHERE_STATE = "Elsewhere"

_LABELS = pa.array([state.label for state in TransactionState])
_Columns = dict[str, Any]
_Row = dict[str, Any]


def plan_transactions(found: TransactionRange, placement: Placement, context: BatchContext) -> tuple[TableWrite, ...]:
    """Writes of both tables, and of the quarantine."""
    everything = _all_partitions(found.reductions)
    is_elsewhere = at_places(everything["transactional_id"], everything["log_partition"], placement.elsewhere)
    reduced, elsewhere = everything.filter(pc.invert(is_elsewhere)), everything.filter(is_elsewhere)
    columns = _common_columns(reduced, context)
    quarantine = [row for reduction in found.reductions for row in _unread_rows(reduction, context)]
    return (
        TableWrite("transactions", _table(source_schema("transactions"), columns | _state_columns(reduced))),
        TableWrite(
            "transaction_history",
            pa.concat_tables(
                [
                    _table(_HISTORY, columns | _history_columns(reduced, context)),
                    _table(_HISTORY, _elsewhere_columns(elsewhere, context)),
                ]
            ),
        ),
        TableWrite("quarantine", as_table("quarantine", quarantine)),
    )


def _all_partitions(reductions: Iterable[TransactionReduction]) -> pa.Table:
    """The reduced transactions of all log partitions, with the column `log_partition`."""
    tables = [REDUCED_TRANSACTIONS.empty_table().append_column("log_partition", pa.array([], pa.int32()))]
    for reduction in reductions:
        rows = reduction.transactions
        tables.append(rows.append_column("log_partition", pa.repeat(pa.scalar(reduction.partition, pa.int32()), len(rows))))
    return pa.concat_tables(tables).combine_chunks()


def _common_columns(reduced: pa.Table, context: BatchContext) -> _Columns:
    return {
        "transactional_id": reduced["transactional_id"],
        "state": _LABELS.take(reduced["state"]),
        "producer_id": reduced["producer_id"],
        "producer_epoch": reduced["producer_epoch"],
        "start_timestamp": times_of(reduced["start_ms"]),
        "log_partition": reduced["log_partition"],
        "log_offset": reduced["log_offset"],
        "record_timestamp": times_of(reduced["record_timestamp"]),
        "batch_id": pa.repeat(pa.scalar(context.batch_id), len(reduced)),
    }


def _state_columns(reduced: pa.Table) -> _Columns:
    """The other columns of `transactions`. A tombstone removes the row of its id."""
    return {
        "previous_producer_id": _known_ids(reduced["previous_producer_id"]),
        "next_producer_id": _known_ids(reduced["next_producer_id"]),
        "timeout_ms": reduced["timeout_ms"],
        "partitions": reduced["partitions"],
        "last_update_timestamp": times_of(reduced["last_update_ms"]),
        "client_transaction_version": reduced["client_transaction_version"],
        EFFECTIVE_OFFSET: reduced["log_offset"],
        DELETED: pc.is_null(reduced["state"]),
    }


def _history_columns(reduced: pa.Table, context: BatchContext) -> _Columns:
    """The other columns of `transaction_history`. `state` of an expired id is Dead."""
    ids = reduced["transactional_id"]
    previous = context.previous.rows("transactions", ["transactional_id", *_PREVIOUS], transactional_id=ids.to_pylist())
    row = pc.index_in(ids, previous["transactional_id"].combine_chunks())
    return {
        "state": pc.fill_null(_LABELS.take(reduced["state"]), DEAD.label),
        **{f"previous_{name}": previous[name].take(row) for name in _PREVIOUS},
        **{name: reduced[name] for name in COUNTS},
    }


def _elsewhere_columns(elsewhere: pa.Table, context: BatchContext) -> _Columns:
    """The columns of `transaction_history` for records in log partitions that do not speak for their ids."""
    count = len(elsewhere)
    return {
        **_common_columns(elsewhere, context),
        "state": pa.repeat(pa.scalar(ELSEWHERE_STATE), count),
        **{f"previous_{name}": pa.nulls(count, _HISTORY.field(f"previous_{name}").type) for name in _PREVIOUS},
        **{name: elsewhere[name] for name in COUNTS},
    }


def _known_ids(producer_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(producer_ids, NO_PRODUCER_ID), pa.scalar(None, pa.int64()), producer_ids)


def _table(schema: pa.Schema, columns: _Columns) -> pa.Table:
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


def _unread_rows(reduction: TransactionReduction, context: BatchContext) -> Iterable[_Row]:
    """Rows of the quarantine."""
    for record, anomaly in reduction.unread:
        position = (record.partition, record.offset, record.timestamp)
        yield _unread_row(*position, anomaly.detail, context) | {"key": record.key, "value": record.value}
    for damage in reduction.damages:
        yield _unread_row(reduction.partition, damage.offset, -1, damage.reason, context)


def _unread_row(partition: int, offset: int, timestamp_ms: int, reason: str, context: BatchContext) -> _Row:
    return {
        "log_partition": partition,
        "log_offset": offset,
        "record_timestamp": to_time(timestamp_ms),
        "batch_id": context.batch_id,
        "reason": reason,
        "log_topic": TRANSACTION_STATE_TOPIC,
    }
