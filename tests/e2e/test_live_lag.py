"""Lag of groups on a live broker: the rows equal those of Kafka's own tool, and the true age is within the bounds."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import java_tools
import pytest
from group_offsets import commit_offsets
from jobs import run_job

from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.usefixtures("spark")]

TOPIC, PARTITIONS = "orders", 3
BEHIND, AT_END, LIVE, STATIC, MODERN, MIXED = "behind", "at-end", "live", "static", "modern", "mixed"


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    with PrivateBroker("4.1.1", offsets_partitions=2) as running:
        yield running


def now_ms() -> int:
    return int(time.time() * 1000)


def query(tables: Path, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Snapshot.open(str(tables)).query(sql).to_pylist()
    return rows


def commit(bootstrap: str, group: str, offsets: dict[int, int]) -> None:
    commit_offsets(bootstrap, group, {(TOPIC, number): offset for number, offset in offsets.items()})


def described(bootstrap: str, group: str) -> list[tuple[str, ...]]:
    """Rows of `kafka-consumer-groups --describe`: partition, offsets, lag and member."""
    rows = java_tools.table(java_tools.consumer_groups(bootstrap, "--describe", "--group", group))
    return sorted(
        (row["PARTITION"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"], row["CONSUMER-ID"]) for row in rows
    )


def in_tables(tables: Path, group: str) -> list[tuple[str, ...]]:
    columns = ("partition", "group_offset", "latest_offset", "lag", "consumer_id")
    rows = query(tables, f"SELECT {', '.join(columns)} FROM lag WHERE group_id = '{group}'")
    return sorted(tuple("-" if row[name] is None else str(row[name]) for name in columns) for row in rows)


@pytest.mark.long
def test_lag_of_live_groups(broker: PrivateBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = f"kafka://{broker.bootstrap}/__consumer_offsets"
    with Clients(broker.bootstrap) as clients:
        clients.create_topics([TOPIC], PARTITIONS)
        clients.produce(TOPIC, PARTITIONS, 30)
        commit(broker.bootstrap, BEHIND, {0: 4, 1: 10})
        commit(broker.bootstrap, AT_END, {0: 10, 1: 10, 2: 10})
        member = clients.consumer(LIVE, [TOPIC])
        clients.settle([member], PARTITIONS)
        static = [clients.consumer(STATIC, [TOPIC], client_id=f"w{n}", group_instance_id=f"instance-{n}") for n in (1, 2)]
        clients.settle(static, PARTITIONS)
        modern = clients.consumer(MODERN, [TOPIC], group_protocol="consumer")
        clients.settle([modern], PARTITIONS)
        clients.commit_everywhere([modern], 3)
        mixed = [clients.consumer(MIXED, [TOPIC], group_protocol="consumer")]
        clients.settle(mixed, PARTITIONS)
        mixed.append(clients.consumer(MIXED, [TOPIC]))
        clients.settle(mixed, PARTITIONS)
        run_job(source, tmp_path, clock_ms=now_ms, lag_interval_seconds=30)

        for group in (BEHIND, AT_END, LIVE):
            assert in_tables(tmp_path, group) == described(broker.bootstrap, group)
            capsys.readouterr()
            assert main(["lag", "--tables", str(tmp_path), "--group", group]) == 0
            # byte for byte what Kafka's tool prints
            assert capsys.readouterr().out == java_tools.consumer_groups(broker.bootstrap, "--describe", "--group", group)
        for group in (AT_END, LIVE, STATIC, MODERN, MIXED):
            for mode in (["--members"], ["--members", "--verbose"], ["--state"], ["--state", "--verbose"]):
                assert main(["lag", "--tables", str(tmp_path), "--group", group, *mode]) == 0
                printed = java_tools.consumer_groups(broker.bootstrap, "--describe", "--group", group, *mode)
                # the members have no order
                assert sorted(capsys.readouterr().out.split("\n")) == sorted(printed.split("\n"))
        assert check(str(tmp_path)) == []
        rows = {(row["group_id"], row["partition"]): row for row in query(tmp_path, "SELECT * FROM lag")}
        assert rows[AT_END, 0]["lag_seconds"] == 0
        assert rows[AT_END, 0]["lag_method"] == "exact"
        assert (rows[BEHIND, 0]["lag_seconds"], rows[BEHIND, 0]["lag_reason"]) == (None, "first_sample")
        assert rows[LIVE, 0]["member_host"] == "/127.0.0.1"
        (batch,) = query(tmp_path, "SELECT max(batch_id) AS id FROM end_offsets")
        assert {row["batch_id"] for row in rows.values()} == {batch["id"]}

        # records that become readable between two samples have an age with bounds
        before = time.time()
        clients.produce(TOPIC, PARTITIONS, 15)
        produced = time.time()
        time.sleep(1.5)
        run_job(source, tmp_path, clock_ms=now_ms, lag_interval_seconds=30)
        assert in_tables(tmp_path, AT_END) == described(broker.bootstrap, AT_END)
        for row in query(tmp_path, f"SELECT * FROM lag WHERE group_id = '{AT_END}'"):
            sampled = row["sampled_at"].timestamp()
            assert row["lag_method"] == "interpolated"
            assert row["lag_seconds_low"] <= sampled - before
            assert row["lag_seconds_high"] >= sampled - produced
        # one stored sample per partition and change
        counts = query(tmp_path, "SELECT partition, count(*) AS n FROM end_offsets GROUP BY partition ORDER BY partition")
        assert [row["n"] for row in counts] == [2, 2, 2]
