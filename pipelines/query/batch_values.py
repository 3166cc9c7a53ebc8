"""Values of a batch for the placeholders of views, in the SQL of Spark."""

from collections.abc import Mapping
from datetime import datetime

from pipelines.runtime.timestamps import to_us
from pipelines.tables import definitions
from pipelines.tables.store import Batch, literal


def spark_batch_values(batch: Batch) -> dict[str, str]:
    """An expression for each of BATCH_COLUMNS."""
    return {column: _expression(getattr(batch, column)) for column in definitions.BATCH_COLUMNS}


def _expression(value: str | int | datetime | Mapping[int, int] | None) -> str:
    """A value of `batches`. Of a position, views need only whether it is known."""
    if value is None or isinstance(value, Mapping):
        return "NULL" if value is None else literal("known")
    return f"timestamp_micros({to_us(value)})" if isinstance(value, datetime) else literal(value)
