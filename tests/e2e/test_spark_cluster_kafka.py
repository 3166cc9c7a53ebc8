"""`spark-kafka://` on a cluster of executors, through an outage of its broker."""

import signal
import time
from pathlib import Path

import pytest
from cluster_runs import written_conf
from first_use import TOKEN_PROVIDER
from group_offsets import commit_offsets
from real_runs import real_run
from spark_cluster import spark_cluster

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]

VERSION = "4.1.1"
#: Spark's driver and executors meet the missing broker in this time.
AWAY_SECONDS = 8


def committed(tables: Path) -> dict[str, int]:
    """Group → committed offset, of complete batches."""
    try:
        rows = Snapshot.open(str(tables)).query("SELECT group_id, committed_offset FROM committed_offsets").to_pylist()
    except GrouplakeError:
        return {}
    return {row["group_id"]: row["committed_offset"] for row in rows}


def test_a_broker_that_is_away_for_some_seconds(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    with PrivateBroker(VERSION, offsets_partitions=4) as broker, spark_cluster(tmp_path / "cluster") as cluster:
        with Clients(broker.bootstrap) as clients:
            clients.create_topics(["orders"], 1)
        commit_offsets(broker.bootstrap, "before", {("orders", 0): 1})
        conf = written_conf(tmp_path, cluster.address, kafka_token_provider=TOKEN_PROVIDER)
        source = ["--source", f"spark-kafka://{broker.bootstrap}/__consumer_offsets", "--tables", str(tables)]
        with real_run(["run", *source, "--conf", str(conf), "--trigger", "1s"], tmp_path / "output") as run:
            assert run.wait_until(lambda: committed(tables) == {"before": 1}), run.output
            broker.kill()
            time.sleep(AWAY_SECONDS)
            broker.start()
            commit_offsets(broker.bootstrap, "after", {("orders", 0): 2})
            assert run.wait_until(lambda: committed(tables) == {"before": 1, "after": 2}), run.output
            run.process.send_signal(signal.SIGTERM)
            assert run.wait() == 0, run.output
    assert check(str(tables)) == []
