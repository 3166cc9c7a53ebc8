"""What `grouplake run` can be asked to do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.state.era import Era
from pipelines.errors import UsageError
from pipelines.source.address import Address

#: The trigger of a job that reads what is there, and ends.
AVAILABLE_NOW = "available-now"


@dataclass(frozen=True)
class RunOptions:
    """What `grouplake run` was asked to do. Times in ms; `now_ms` is the time of the expiry sweep."""

    address: Address
    tables: str
    era: Era
    retention_ms: int
    trigger: str
    expiry: str
    now_ms: int | None
    bulk_rows: int
    max_records: int
    tasks: int
    #: May hold the keys of an object store.
    spark: Mapping[str, Any] = field(repr=False)
    kafka: Mapping[str, str] = field(repr=False)
    #: Further options of Kafka's Java client, for spark-kafka:// sources.
    kafka_jvm: Mapping[str, Any] = field(repr=False, default_factory=dict)


def trigger_arguments(trigger: str) -> dict[str, Any]:
    """`available-now`, `continuous` or an interval such as `10s`, as arguments of `DataStreamWriter.trigger`."""
    if trigger == AVAILABLE_NOW:
        return {"availableNow": True}
    if trigger == "continuous":
        return {"processingTime": "0 seconds"}
    found = re.fullmatch(r"(\d+)(ms|s|m|h)", trigger)
    if not found:
        raise UsageError(f"not a trigger: {trigger!r} (expected available-now, continuous, or an interval such as 10s or 5m)")
    unit = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}[found[2]]
    return {"processingTime": f"{found[1]} {unit}"}
