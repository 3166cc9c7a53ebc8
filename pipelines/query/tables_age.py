"""The age of the tables that a snapshot reads, at the current time."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from pipelines.query.clusters import AnySnapshot, ClusterSnapshot
from pipelines.query.engine import Snapshot, quoted
from pipelines.tables.data_age import DataAge, data_age
from pipelines.tables.job_state import job_state
from pipelines.tables.store import Batch

_SAMPLED = "SELECT max(sampled_at) AS at FROM {schema}lag"
#: The newest batch may be a short one between long ones.
_LONGEST = """
SELECT max(arrow_cast(finished_at, 'Int64') - arrow_cast(started_at, 'Int64')) AS us
FROM {schema}batches WHERE batch_id > {newest} - 50
"""


def tables_age(snapshot: Snapshot, root: str, now: datetime | None = None) -> DataAge:
    """The age of the tables under `root` at their newest batch, which `snapshot` reads."""
    return _age(snapshot.query, snapshot.batch, root, now or datetime.now(UTC))


def age_lines(snapshot: AnySnapshot, roots: Mapping[str, str], now: datetime) -> dict[str, str]:
    """Folder → line, for the folders whose data is older than expected; `snapshot` reads their newest batches."""
    found = {}
    for name, batch in snapshot.batches.items():
        schema = f"{quoted(name)}." if isinstance(snapshot, ClusterSnapshot) else ""
        age = _age(snapshot.query, batch, roots[name], now, schema)
        if age.headline is not None:
            found[name] = f"{name}: {age.headline}" if len(roots) > 1 else age.headline
    return found


def _age(query: Callable[[str], pa.Table], batch: Batch, root: str, now: datetime, schema: str = "") -> DataAge:
    if batch.interval_seconds is None:
        return data_age(batch, None, now)
    sampled_at = query(_SAMPLED.format(schema=schema))["at"][0].as_py() if "lag" in batch.versions else None
    age = data_age(batch, sampled_at, now)
    if not age.is_old:
        return age
    return data_age(batch, sampled_at, now, job_state(root), longest_batch(query, batch, schema))


def longest_batch(query: Callable[[str], pa.Table], batch: Batch, schema: str = "") -> timedelta:
    """Duration of the longest of the last batches."""
    return timedelta(microseconds=query(_LONGEST.format(schema=schema, newest=batch.batch_id))["us"][0].as_py() or 0)
