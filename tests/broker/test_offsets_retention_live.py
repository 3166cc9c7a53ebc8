"""The offset retention of a job is that of its brokers, as they report it at the start of each run."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import run_job

from coordinator_core.sources.kafka_connection import close_idle_connections
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.engine import Snapshot
from pipelines.tables.store import TableStore

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.usefixtures("spark"), pytest.mark.long]

MINUTES = 25


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    properties = {"offsets.retention.minutes": str(MINUTES)}
    with PrivateBroker("4.1.1", offsets_partitions=2, properties=properties) as running:
        yield running
        close_idle_connections()


def now_ms() -> int:
    return int(time.time() * 1000)


def retention_minutes(tables: Path) -> float:
    last = TableStore(str(tables)).last_batch()
    assert last is not None
    return last.retention_ms / 60_000


def test_a_run_uses_the_retention_of_its_brokers(broker: PrivateBroker, tmp_path: Path) -> None:
    with Clients(broker.bootstrap) as clients:
        clients.create_topics(["orders"], 1)
        clients.commit(clients.consumer("simple"), [("orders", 0, 1)])
    source = f"kafka://{broker.bootstrap}/__consumer_offsets"

    def run(**changed: Any) -> str:
        (line,) = [each for each in run_job(source, tmp_path, clock_ms=now_ms, **changed) if each.startswith("offset retention")]
        return line

    assert run() == "offset retention: 25 minutes (offsets.retention.minutes of the brokers)"
    assert retention_minutes(tmp_path) == MINUTES
    sql = "SELECT o.expires_at - c.commit_timestamp AS kept FROM expiring_offsets o JOIN offsets c ON c.group_id = o.group_id"
    (row,) = Snapshot.open(str(tmp_path)).query(sql).to_pylist()
    assert row["kept"].total_seconds() == MINUTES * 60

    # a setting of the job is used instead, also by a run that has nothing to read
    line = run(retention_ms=40 * 60_000, retention_setting="--retention-minutes")
    assert line == "offset retention: 40 minutes (--retention-minutes); it was 25 minutes until batch 0"
    assert retention_minutes(tmp_path) == 40
    # without the setting the brokers are asked again
    line = run()
    assert line == "offset retention: 25 minutes (offsets.retention.minutes of the brokers); it was 40 minutes until batch 1"
    assert retention_minutes(tmp_path) == MINUTES
