"""The text of /metrics: names, labels and values, what is left out, and what is escaped."""

import gzip
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lag_tables import SAMPLED_AT, group_row, lag_row, write_tables
from metrics_text import series, values

from pipelines.metrics.metric_series import escaped
from pipelines.metrics.settings import FAMILIES, metrics_settings
from pipelines.metrics.site import Site
from pipelines.query.snapshots.loading import SnapshotLoader
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError
from pipelines.runtime.version import version_text

ALL = {"families": list(FAMILIES)}


def site(*roots: str, now: Any = SAMPLED_AT, **changes: Any) -> Site:
    """A site without its thread, with the tables loaded once."""
    settings = metrics_settings({**load_configuration(None).metrics, **changes})
    made = Site({Path(root).name: root for root in roots}, settings, 1, print, clock=lambda: now)
    made.refresh()
    return made


def text(root: str, now: Any = SAMPLED_AT, **changes: Any) -> bytes:
    return site(root, now=now, **changes).metrics().text


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A group with members that is behind, one with unknown values of every kind, and one without partitions."""
    folder = str(tmp_path_factory.mktemp("tables") / "east")
    owner = {"consumer_id": "m1", "member_host": "/10.0.0.1", "client_id": "w1"}
    write_tables(
        folder,
        groups=[group_row("billing", 2, protocol_type="consumer", protocol="range"), group_row("idle", 1, state="Stable")],
        lag=[
            lag_row("billing", "orders", 0, 90, 100, lag_seconds=75.0, lag_seconds_low=60.0, stuck_seconds=5.5, **owner),
            lag_row("billing", "orders", 1, 100, 100, lag_seconds=0.0, lag_seconds_low=0.0, **owner),
            lag_row("billing", "refunds", 0, 1, 4, lag_seconds=2.5, retention_margin_seconds=100.0, messages_lost=0),
            lag_row("odd", "orders", 0, 120, 100, lag_method="none", lag_reason="commit_beyond_end"),
            lag_row("odd", "orders", 1, None, 100, lag_method="none", lag_reason="no_commit"),
            lag_row("odd", "orders", 2, 3, None, lag_method="none", lag_reason="no_sample"),
            lag_row("odd", "orders", 3, 10, 50, messages_lost=20, lag_seconds=math.nan, lag_seconds_low=math.inf),
        ],
    )
    return folder


def test_family_a(root: str) -> None:
    found = text(root)
    key = ("group", "topic", "partition")
    assert values(found, "kafka_consumergroup_group_lag", *key) == {
        ("billing", "orders", "0"): 10,
        ("billing", "orders", "1"): 0,
        ("billing", "refunds", "0"): 3,
        ("odd", "orders", "3"): 40,
    }
    labels = ("cluster_name", "member_host", "consumer_id", "client_id", "topic", "partition")
    assert ("east", "/10.0.0.1", "m1", "w1", "orders", "0") in values(found, "kafka_consumergroup_group_lag", *labels)
    assert ("east", "", "", "", "refunds", "0") in values(found, "kafka_consumergroup_group_lag", *labels)
    assert values(found, "kafka_consumergroup_group_offset", *key)["odd", "orders", "2"] == 3
    assert values(found, "kafka_consumergroup_group_lag_seconds", *key) == {
        ("billing", "orders", "0"): 75,
        ("billing", "orders", "1"): 0,
        ("billing", "refunds", "0"): 2.5,
    }
    assert values(found, "kafka_consumergroup_group_max_lag", "group") == {("billing",): 10, ("odd",): 40}
    assert values(found, "kafka_consumergroup_group_sum_lag", "cluster_name", "group")["east", "billing"] == 13
    assert values(found, "kafka_consumergroup_group_max_lag_seconds", "group") == {("billing",): 75}
    assert values(found, "kafka_consumergroup_group_topic_sum_lag", "group", "topic")["billing", "orders"] == 10
    assert values(found, "kafka_partition_latest_offset", "topic", "partition") == {
        ("orders", "0"): 100,
        ("orders", "1"): 100,
        ("orders", "3"): 50,
        ("refunds", "0"): 4,
    }
    assert values(found, "kafka_consumergroup_poll_time_ms", "cluster_name").keys() == {("east",)}


def test_family_b(root: str) -> None:
    found = text(root)
    key = ("consumergroup", "topic", "partition")
    assert values(found, "kafka_consumergroup_lag", *key)["billing", "orders", "0"] == 10
    assert values(found, "kafka_consumergroup_current_offset", *key)["odd", "orders", "0"] == 120
    assert values(found, "kafka_consumergroup_lag_sum", *key[:2]) == {
        ("billing", "orders"): 10,
        ("billing", "refunds"): 3,
        ("odd", "orders"): 40,
    }
    assert values(found, "kafka_consumergroup_current_offset_sum", *key[:2])["odd", "orders"] == 133
    assert values(found, "kafka_consumergroup_members", "consumergroup") == {("billing",): 2, ("idle",): 1, ("odd",): 0}
    assert values(found, "kafka_topic_partition_oldest_offset", "topic", "partition")["refunds", "0"] == 0
    # the tables know nothing of brokers here
    assert not {"kafka_brokers", "kafka_broker_info", "kafka_topic_partitions"} & series(found).keys()


def test_family_c(root: str) -> None:
    found = text(root, **ALL)
    info = ("group_id", "protocol", "protocol_type", "state")
    assert values(found, "kminion_kafka_consumer_group_info", *info)["billing", "range", "consumer", "Stable"] == 1
    group_topic = ("group_id", "topic_name")
    assert values(found, "kminion_kafka_consumer_group_topic_lag", *group_topic)["billing", "orders"] == 10
    assert values(found, "kminion_kafka_consumer_group_topic_members", *group_topic)["billing", "orders"] == 1
    assert values(found, "kminion_kafka_consumer_group_topic_assigned_partitions", *group_topic)["billing", "orders"] == 2
    assert values(found, "kminion_kafka_consumer_group_empty_members", "group_id")["billing",] == 1
    lag = values(found, "kminion_kafka_consumer_group_topic_partition_lag", *group_topic, "partition_id")
    assert lag["billing", "refunds", "0"] == 3
    assert values(found, "kminion_kafka_topic_high_water_mark_sum", "topic_name")["orders",] == 250


def test_own_series(root: str) -> None:
    found = text(root)
    at = SAMPLED_AT.timestamp()
    assert values(found, "grouplake_snapshot_timestamp_seconds", "cluster_name") == {("east",): at}
    assert values(found, "grouplake_end_offsets_timestamp_seconds", "cluster_name") == {("east",): at}
    assert values(found, "grouplake_batch_id", "cluster_name") == {("east",): 0}
    assert values(found, "grouplake_batch_records_read", "cluster_name") == {("east",): 12}
    assert values(found, "grouplake_next_offset", "log_partition") == {("0",): 7, ("1",): 3}
    assert values(found, "grouplake_batch_phase_seconds", "phase").keys() == {("sample",)}
    assert values(found, "grouplake_tables_up", "cluster_name") == {("east",): 1}
    # a partition without a commit has no lag, which is not a defect
    assert values(found, "grouplake_group_unknown_partitions", "group") == {("odd",): 2}
    assert values(found, "grouplake_group_messages_lost", "group") == {("odd",): 20}
    assert values(found, "grouplake_group_lag_seconds_low", "group") == {("billing",): 60}
    assert values(found, "grouplake_group_stuck_seconds", "group") == {("billing",): 5.5}
    assert values(found, "grouplake_group_retention_margin_seconds", "group") == {("billing",): 100}


def test_replicas_and_brokers(tmp_path: Path) -> None:
    folder = str(tmp_path / "east")
    partitions: list[dict[str, Any]] = [
        {
            "topic": "orders",
            "partition": 0,
            "leader": 1,
            "replicas": [1, 2],
            "in_sync_replicas": [1, 2],
            "cleanup_policy": "compact",
        },
        {"topic": "orders", "partition": 1, "leader": 1, "replicas": [2, 1], "in_sync_replicas": [1]},
        {"topic": "orders", "partition": 2, "leader": None, "replicas": [2, 1], "in_sync_replicas": []},
        *(
            {"topic": "__consumer_offsets", "partition": number, "leader": leader, "replicas": [1], "in_sync_replicas": [1]}
            for number, leader in ((0, 2), (1, None))
        ),
    ]
    brokers = [
        {"node_id": 1, "host": "one", "port": 9092, "is_controller": False, "cluster_id": "c1", "cluster_version": "4.1"},
        {"node_id": 2, "host": "two", "port": 9093, "is_controller": True, "rack": "r", "cluster_id": "c1"},
    ]
    groups = [group_row("g", log_partition=0), group_row("leaderless", log_partition=1), group_row("elsewhere", log_partition=7)]
    lag = [lag_row("g", "orders", 0, 1, 2), lag_row("recordless", "orders", 0, 1, 2)]
    write_tables(folder, lag=lag, groups=groups, topic_partitions=partitions, brokers=brokers)
    found = text(folder, **ALL)
    # the coordinator of a group is the leader of its log partition
    assert values(found, "kminion_kafka_consumer_group_info", "group_id", "coordinator_id").keys() == {
        *(("g", "2"), ("leaderless", ""), ("elsewhere", ""), ("recordless", ""))
    }
    found = without_log(found)
    key = ("topic", "partition")
    assert values(found, "kafka_brokers") == {(): 2}
    assert values(found, "kafka_broker_info", "id", "address") == {("1", "one:9092"): 1, ("2", "two:9093"): 1}
    assert values(found, "kafka_topic_partitions", "topic") == {("orders",): 3}
    assert values(found, "kafka_topic_partition_replicas", *key) == {("orders", str(n)): 2 for n in range(3)}
    assert list(values(found, "kafka_topic_partition_in_sync_replica", *key).values()) == [2, 1, 0]
    assert list(values(found, "kafka_topic_partition_under_replicated_partition", *key).values()) == [0, 1, 1]
    assert values(found, "kafka_topic_partition_leader", *key) == {("orders", "0"): 1, ("orders", "1"): 1}
    assert list(values(found, "kafka_topic_partition_leader_is_preferred", *key).values()) == [1, 0, 0]
    info = ("cluster_id", "cluster_version", "controller_id", "broker_count")
    assert values(found, "kminion_kafka_cluster_info", *info) == {("c1", "4.1", "2", "2"): 1}
    info = ("topic_name", "partition_count", "replication_factor", "cleanup_policy")
    assert values(found, "kminion_kafka_topic_info", *info) == {("orders", "3", "2", "compact"): 1}


def without_log(text: bytes) -> bytes:
    """The text without the series of the log topic."""
    return b"".join(line for line in text.splitlines(keepends=True) if b'="__consumer_offsets"' not in line)


def test_statuses_of_burrow_before_its_window_is_full(tmp_path: Path) -> None:
    """With a batch every 15 minutes a window of ten commits is full after more than two hours."""
    folder = str(tmp_path / "east")
    status: dict[str, Any] = {
        "rule": None,
        "detail": "",
        "findings": [],
        "partitions": 1,
        "unknown_partitions": 0,
        "complete": 0.2,
    }
    write_tables(
        folder,
        groups=[group_row("billing"), group_row("unheard")],
        lag=[lag_row("billing", "orders", 0, 90, 100), lag_row("unheard", "orders", 0, 1, 100)],
        group_status=[
            {
                "group_id": "billing",
                "status": "STOP",
                "burrow_status": "ERR",
                "total_lag": 10,
                "evaluated_at": SAMPLED_AT,
                **status,
            },
            {"group_id": "unheard", "status": "UNKNOWN", "burrow_status": "NOTFOUND", "evaluated_at": SAMPLED_AT, **status},
        ],
        partition_status=[
            {
                "group_id": "billing",
                "topic": "orders",
                "partition": 0,
                "status": "STOP",
                "rule": "burrow_2",
                "start_offset": 80,
                "start_timestamp": SAMPLED_AT,
                "end_offset": 90,
                "end_timestamp": SAMPLED_AT,
                "current_lag": 10,
                "window_rows": 2,
                "window_seconds": 900.0,
                "complete": 0.2,
                "evaluated_at": SAMPLED_AT,
            }
        ],
    )
    found = text(folder, **ALL)
    burrow, exporter = ("consumer_group", "topic", "partition"), ("group", "topic", "partition")
    assert values(found, "burrow_kafka_topic_partition_status", *burrow) == {("billing", "orders", "0"): 4}
    assert values(found, "burrow_kafka_consumer_current_offset", *burrow) == {("billing", "orders", "0"): 90}
    # burrow_exporter counts statuses from 1
    of_billing = {"partition_lag": 10, "partition_current_offset": 90, "partition_status": 5, "partition_max_offset": 100}
    for name, value in of_billing.items():
        assert values(found, f"kafka_burrow_{name}", *exporter)["billing", "orders", "0"] == value
    assert values(found, "kafka_burrow_status", "cluster", "group") == {("east", "billing"): 4}
    assert values(found, "kafka_burrow_total_lag", "group")["billing",] == 10
    assert values(found, "kafka_burrow_topic_lag", *exporter[:2])["billing", "orders"] == 10
    assert values(found, "kafka_burrow_topic_partition_offset", "cluster", *exporter[1:]) == {("east", "orders", "0"): 100}


def test_names_of_klag(root: str, tmp_path: Path) -> None:
    found, key = text(root, **ALL), ("consumer_group", "topic", "partition")
    assert values(found, "klag_consumer_lag", *key)["billing", "orders", "0"] == 10
    assert values(found, "klag_consumer_lag_sum", "consumer_group")["billing",] == 13
    assert values(found, "klag_partition_log_end_offset", *key)["billing", "orders", "0"] == 100
    assert values(found, "klag_consumer_lag_ms", *key[:2])["billing", "orders"] == 75_000
    assert b"klag_hot_partition{" not in found
    hot = {"rule": "hot_partition", "status": "WARN", "topic": "orders", "partition": 1, "detail": "", "rate": 120.126}
    other = {**hot, "rule": "falls_behind", "partition": 0}
    status = {"group_id": "billing", "status": "WARN", "burrow_status": "OK", "evaluated_at": SAMPLED_AT, "detail": ""}
    write_tables(
        str(tmp_path / "east"),
        lag=[lag_row(name, "orders", number, 90, 100) for name in ("billing", "mirror") for number in (0, 1)],
        group_status=[{**status, "findings": [other, hot], "partitions": 2, "unknown_partitions": 0, "complete": 1.0}],
    )
    found = text(str(tmp_path / "east"), **ALL)
    assert values(found, "klag_hot_partition", "topic", "partition") == {("orders", "1"): 12_013}
    assert values(found, "klag_hot_partition_lag", *key) == {("billing", "orders", "1"): 10}


def test_the_build_of_the_exporter_is_ours(root: str) -> None:
    ((version, revision),) = values(text(root), "kafka_exporter_build_info", "version", "revision")
    assert version_text() == f"grouplake {version}" + (f" (git {revision})" if revision else "")


def test_every_value_is_a_finite_number_from_0(root: str) -> None:
    for name, found in series(text(root, **ALL)).items():
        assert all(math.isfinite(value) and value >= 0 for value in found.values()), name


def test_without_samples_there_are_offsets_and_no_lag(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    offset = {"group_id": "g", "topic": "orders", "partition": 0, "committed_offset": 5, "metadata": "", "log_offset": 1}
    write_tables(folder, groups=[group_row("g", group_type="simple", state="Empty")], offsets=[offset])
    found = series(text(folder))
    assert list(found["kafka_consumergroup_current_offset"].values()) == [5]
    assert list(found["grouplake_group_unknown_partitions"].values()) == [1]
    assert not {"kafka_consumergroup_lag", "kafka_consumergroup_group_max_lag", "grouplake_end_offsets_timestamp_seconds"} & set(
        found
    )


@pytest.mark.parametrize(
    ("granularity", "absent"),
    [
        ("partition", set()),
        ("topic", {"kafka_consumergroup_lag", "kafka_partition_latest_offset", "kafka_consumergroup_group_offset"}),
        ("group", {"kafka_consumergroup_lag", "kafka_consumergroup_lag_sum", "kafka_consumergroup_group_topic_sum_lag"}),
    ],
)
def test_granularity(granularity: str, absent: set[str], root: str) -> None:
    found = series(text(root, granularity=granularity)).keys()
    assert "kafka_consumergroup_group_max_lag" in found
    assert ({"kafka_consumergroup_lag", "kafka_consumergroup_lag_sum"} <= found) == (not absent)
    assert not absent & found


def test_partitions_of_chosen_groups(root: str) -> None:
    found = text(root, partition_groups="bill.*")
    assert {group for (group,) in values(found, "kafka_consumergroup_lag", "consumergroup")} == {"billing"}
    assert {group for (group,) in values(found, "kafka_consumergroup_group_max_lag", "group")} == {"billing", "odd"}


@pytest.mark.parametrize("most", [0, 20, 30, 45, 60, 75, 10_000])
def test_the_limit_keeps_aggregates_and_the_greatest_lags(most: int, tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    rows = [lag_row(f"g{group}", "orders", n, 0, group * 10 + n) for group in range(3) for n in range(4)]
    write_tables(folder, lag=rows)
    found = text(folder, max_series=most)
    everything = text(folder, max_series=10_000)
    count = sum(map(len, series(found).values()))
    # the series about the tables themselves are always there; three more state whether they could be read and are old
    job = sum(len(each) for name, each in series(everything).items() if name.startswith("grouplake_"))
    job += len(series(everything)["kafka_consumergroup_poll_time_ms"])
    assert count <= max(most, job) + 3
    dropped = values(found, "grouplake_metrics_series_dropped", "level")
    assert count + sum(dropped.values()) == sum(map(len, series(everything).values()))
    kept = set(values(found, "kafka_consumergroup_lag", "consumergroup", "partition").values())
    lost = set(values(everything, "kafka_consumergroup_lag", "consumergroup", "partition").values()) - kept
    assert not kept or not lost or min(kept) >= max(lost)
    if dropped["partition",] and not dropped["topic",]:
        assert values(found, "kafka_consumergroup_lag_sum", "consumergroup") == values(
            everything, "kafka_consumergroup_lag_sum", "consumergroup"
        )
    if kept:
        # boards join lags with ends
        ends = values(found, "kafka_partition_latest_offset", "topic", "partition")
        assert {("orders", n) for _, n in values(found, "kafka_consumergroup_lag", "consumergroup", "partition")} <= ends.keys()


@pytest.mark.parametrize("changes", [{"member_labels": False}, {"member_labels_max_series": 3}])
def test_member_labels_stay_without_values(changes: dict[str, Any], root: str) -> None:
    for labels in series(text(root, **changes))["kafka_consumergroup_group_lag"]:
        assert {dict(labels)[name] for name in ("member_host", "consumer_id", "client_id")} == {""}


def test_stale_series_are_left_out(root: str) -> None:
    loaded = site(root, stale_seconds=60)
    fresh = loaded.metrics()
    assert loaded.metrics() is fresh
    stale = text(root, SAMPLED_AT + timedelta(seconds=61), stale_seconds=60)
    names = series(stale).keys()
    assert names < series(fresh.text).keys()
    assert "grouplake_snapshot_timestamp_seconds" in names
    assert not [name for name in names if name.startswith("kafka_consumergroup") and "poll_time" not in name]
    assert not [name for name in names if name.startswith(("grouplake_group_", "kafka_partition"))]
    assert text(root, SAMPLED_AT + timedelta(seconds=61), stale_seconds=0) == fresh.text


def test_lag_is_stale_when_samples_end_although_batches_go_on(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    write_tables(folder, groups=[group_row("g", 1)], lag=[lag_row("g", "orders", 0, 1, 2)])
    later = SAMPLED_AT + timedelta(minutes=10)
    write_tables(folder, later)
    found = series(text(folder, later)).keys()
    assert "kafka_consumergroup_members" in found
    assert not [name for name in found if "lag" in name]


def test_several_clusters_in_one_text(root: str, tmp_path: Path) -> None:
    west = str(tmp_path / "west")
    write_tables(west, lag=[lag_row("billing", "orders", 0, 1, 9)])
    found = site(root, west).metrics().text
    key = ("cluster_name", "consumergroup", "topic", "partition")
    lags = values(found, "kafka_consumergroup_lag", *key)
    assert (lags["east", "billing", "orders", "0"], lags["west", "billing", "orders", "0"]) == (10, 8)
    assert values(found, "grouplake_tables_up", "cluster_name") == {("east",): 1, ("west",): 1}


def test_a_folder_without_tables(root: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    loaded = site(root, missing)
    assert values(loaded.metrics().text, "grouplake_tables_up", "cluster_name") == {("east",): 1, ("missing",): 0}
    assert not loaded.is_ready
    assert loaded.description()["missing"]["error"] == "no complete batch yet"


def test_compressed_text_and_entity_tag(root: str) -> None:
    body = site(root).metrics()
    assert gzip.decompress(body.compressed) == body.text
    assert body.etag == site(root).metrics().etag != site(root, granularity="group").metrics().etag


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a\\nb", '\\"', "}{,=", "ä𝄞\u2028", " "])
def test_hostile_names(name: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    owner = {"consumer_id": name, "member_host": name, "client_id": name}
    write_tables(folder, groups=[group_row(name, 1)], lag=[lag_row(name, name, 0, 1, 3, **owner)])
    found = text(folder, **ALL)
    labels = ("group", "topic", "partition", "consumer_id", "member_host", "client_id")
    assert values(found, "kafka_consumergroup_group_lag", *labels) == {(name, name, "0", name, name, name): 2}
    assert values(found, "kminion_kafka_consumer_group_members", "group_id") == {(name,): 1}


@given(st.text())
def test_escaped_names_are_one_line(name: str) -> None:
    shown = escaped(name)
    assert "\n" not in shown
    assert shown.replace("\\\\", "").replace('\\"', "").count('"') == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"families": ["kafka"]},
            "metrics.families has 'kafka': use names of kafka-lag-exporter, kafka_exporter, kminion, burrow, "
            "burrow_exporter, klag",
        ),
        ({"granularity": "all"}, "metrics.granularity is 'all': must be one of group, topic, partition"),
        ({"partition_groups": "("}, "metrics.partition_groups is '(': not a regular expression"),
    ],
)
def test_invalid_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        metrics_settings({**load_configuration(None).metrics, **changes})
    assert str(error.value).startswith(message)


def test_unchanged_tables_keep_their_object(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    loader = SnapshotLoader("t", folder)
    assert loader.last_batch() is None
    write_tables(folder, groups=[group_row("g", 1)], lag=[lag_row("g", "orders", 0, 1, 2)])
    first = loader.load(_known(loader))
    write_tables(folder, SAMPLED_AT + timedelta(seconds=30), lag=[lag_row("g", "orders", 0, 1, 5)])
    second = loader.load(_known(loader))
    assert second.groups is first.groups
    assert second.lag is not first.lag
    # a request that still holds the first snapshot sees what it saw before
    assert (first.lag.of("g")["lag"].to_pylist(), second.lag.of("g")["lag"].to_pylist()) == ([1], [4])
    assert (first.batch.batch_id, second.batch.batch_id) == (0, 1)
    assert second.lag.of("other").num_rows == 0


def _known(loader: SnapshotLoader) -> Any:
    batch = loader.last_batch()
    assert batch is not None
    return batch


def transaction(transactional_id: str, state: str, start: Any) -> dict[str, Any]:
    of_producer = {"producer_id": 1, "producer_epoch": 0, "timeout_ms": 60_000, "client_transaction_version": 2}
    return {"transactional_id": transactional_id, "state": state, "start_timestamp": start, "partitions": [], **of_producer}


def test_transactions(tmp_path: Path) -> None:
    rows = [
        transaction("new", "Empty", None),
        transaction("ended", "CompleteCommit", SAMPLED_AT - timedelta(days=9)),
        transaction("open", "Ongoing", SAMPLED_AT - timedelta(seconds=30)),
        transaction("later", "Ongoing", SAMPLED_AT),
        transaction("decided", "PrepareAbort", SAMPLED_AT - timedelta(seconds=90)),
    ]
    write_tables(str(tmp_path / "east"), transaction_offsets={0: 4, 12: 9}, transactions=rows)
    found = text(str(tmp_path / "east"))
    assert values(found, "grouplake_transactions", "state") == {
        ("CompleteCommit",): 1,
        ("Empty",): 1,
        ("Ongoing",): 2,
        ("PrepareAbort",): 1,
    }
    oldest = {("east",): SAMPLED_AT.timestamp() - 90}
    assert values(found, "grouplake_oldest_transaction_start_timestamp_seconds", "cluster_name") == oldest
    assert values(found, "grouplake_transaction_next_offset", "log_partition") == {("0",): 4, ("12",): 9}


def test_without_transactions_there_is_no_series_of_them(root: str, tmp_path: Path) -> None:
    assert [name for name in series(text(root)) if "transaction" in name] == []
    # the job reads transactions, and no one is open
    write_tables(str(tmp_path / "east"), transaction_offsets={0: 0}, transactions=[transaction("new", "Empty", None)])
    found = series(text(str(tmp_path / "east")))
    names = {name for name in found if "transaction" in name}
    assert names == {"grouplake_transaction_next_offset", "grouplake_transactions"}


def test_share_groups(tmp_path: Path) -> None:
    """One has read, one has not, and of one the coordinator answered an error."""
    reported = [("workers", "orders", 0, 95, 5), ("workers", "orders", 1, 7, 0), ("new", "orders", 0, None, None)]
    names = ("group_id", "topic", "partition", "start_offset", "lag")
    rows = [{**dict(zip(names, each, strict=True)), "answered_at": SAMPLED_AT} for each in reported]
    rows.append({"group_id": "denied", "reason": "GROUP_AUTHORIZATION_FAILED", "answered_at": SAMPLED_AT})
    groups = [group_row(name, group_type="share") for name in ("denied", "new", "workers")]
    root = str(tmp_path / "east")
    write_tables(root, groups=groups, lag=[lag_row("billing", "orders", 0, 90, 100)], share_offsets=rows)
    of_partition = ("group", "topic", "partition")
    lags = {("workers", "orders", "0"): 5, ("workers", "orders", "1"): 0}
    found = text(root)
    assert values(found, "grouplake_share_group_lag", *of_partition) == lags
    starts = {("workers", "orders", "0"): 95, ("workers", "orders", "1"): 7}
    assert values(found, "grouplake_share_group_start_offset", *of_partition) == starts
    assert values(text(root, partition_groups="work.*"), "grouplake_share_group_lag", *of_partition) == lags
    assert "grouplake_share_group_lag" not in series(text(root, partition_groups="bill.*"))
    assert "grouplake_share_group_lag" not in series(text(root, granularity="topic"))
