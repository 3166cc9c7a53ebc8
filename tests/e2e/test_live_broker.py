"""The job follows a live broker: its tables equal the broker's answers, and a second run reads only new records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_answers import differences
from group_offsets import commit_offsets
from jobs import run_job
from scenario_full import played

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.broker, pytest.mark.usefixtures("spark")]

VERSION = "4.1.1"


@pytest.fixture(scope="module")
def playing() -> Iterator[tuple[PrivateBroker, dict[str, Any]]]:
    """A broker with live groups of every kind, and its answers about them."""
    with PrivateBroker(VERSION, offsets_partitions=4) as broker, played(broker.bootstrap, VERSION) as answers:
        yield broker, answers


def query(tables: Path, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Snapshot.open(str(tables)).query(sql).to_pylist()
    return rows


def test_tables_agree_with_the_broker(playing: tuple[PrivateBroker, dict[str, Any]], tmp_path: Path) -> None:
    broker, answers = playing
    source = f"kafka://{broker.bootstrap}/__consumer_offsets"
    run_job(source, tmp_path)
    assert differences(str(tmp_path), answers) == []
    assert query(tmp_path, "SELECT * FROM quarantine") == []
    (batch,) = query(tmp_path, "SELECT batch_id, records_read FROM batches")
    assert batch["records_read"] > 50

    commit_offsets(broker.bootstrap, "newcomer", {("orders", 2): 123})
    run_job(source, tmp_path)
    found = query(tmp_path, "SELECT group_id, topic, partition, committed_offset FROM committed_offsets WHERE batch_id = 1")
    assert ("newcomer", "orders", 2, 123) in [tuple(row.values()) for row in found]
    (second,) = query(tmp_path, "SELECT records_read FROM batches WHERE batch_id = 1")
    # members that stay commit nothing and do not rebalance: only the commit is new, and heartbeats are not in the log
    assert second["records_read"] <= 5
    assert check(str(tmp_path)) == []


def test_topic_ids_get_their_names_from_the_cluster(playing: tuple[PrivateBroker, dict[str, Any]], tmp_path: Path) -> None:
    broker, _ = playing
    run_job(f"kafka://{broker.bootstrap}/__consumer_offsets", tmp_path)
    learned = query(tmp_path, "SELECT DISTINCT learned_from FROM topic_ids")
    assert {row["learned_from"] for row in learned} & {"cluster", "offset_commit"}
    assert query(tmp_path, "SELECT * FROM assignments WHERE topic IS NULL") == []


def test_sparks_own_source_gives_rows_too(playing: tuple[PrivateBroker, dict[str, Any]], tmp_path: Path) -> None:
    """Spark's Kafka source returns no rows from an internal topic unless it is configured for it."""
    broker, answers = playing
    run_job(f"spark-kafka://{broker.bootstrap}/__consumer_offsets", tmp_path)
    plain = {group: found for group, found in answers["committed"].items() if not group.startswith("txn-")}
    assert sum(map(len, plain.values())) > 10
    assert differences(str(tmp_path), {"committed": plain}) == []
