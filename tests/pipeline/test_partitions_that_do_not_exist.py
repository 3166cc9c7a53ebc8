"""Partition numbers from logs: no reader allocates by them, and a partition that a topic lacks is shown as such.

Brokers refuse commits to partitions that a topic does not have, but logs have them: of topics that were created anew with fewer
partitions, of other coordinators, and of producers that write to the log.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from lag_tables import SAMPLED_AT, group_row, lag_row, write_tables
from shop_pages import ShopPages
from status_story import Story

STRANGE = (-(2**31), -1, 7, 20_000_000, 2**31 - 1)
#: Far more than the answers about a topic with two partitions need.
MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> ShopPages:
    """Groups on `orders`, which has the partitions 0 and 1: `billing` on these, `strange` on both and on others.

    `deleted` has positions on a topic that does not exist.
    """
    root = str(tmp_path_factory.mktemp("tables") / "east")
    story = Story(root)
    for seconds in (0, 60):
        story.at(seconds).end(100 + seconds, 0).end(200 + seconds, 1)
        for group in ("billing", "strange"):
            story.commit(90 + seconds, 0, group=group).commit(190 + seconds, 1, group=group)
        for partition in STRANGE:
            story.commit(5, partition, group="strange")
        story.log.commit(0, 3, group="deleted", topic="gone", at=story.log.now_ms)
        story.log.commit(9, 3, group="deleted", topic="gone", at=story.log.now_ms)
        story.at(seconds + 1).sample()
    story.expect_same_from_histories()
    return ShopPages(root, clock=story.clock)


def burrow(pages: ShopPages, path: str) -> Any:
    answer = pages.at(f"/v3/kafka/east/{path}")
    assert answer.status_code == 200, answer.text
    assert len(answer.content) < MOST_BYTES
    return answer.json()


def test_burrows_lists_are_as_long_as_the_topic(pages: ShopPages) -> None:
    topics = burrow(pages, "consumer/strange")["topics"]
    assert topics.keys() == {"orders"}
    assert [partition["current-lag"] for partition in topics["orders"]] == [10, 10]
    assert topics == burrow(pages, "consumer/strange")["topics"]
    assert burrow(pages, "topic/orders")["offsets"] == [160, 260]
    assert len(burrow(pages, "consumer/deleted")["topics"]["gone"]) == 10
    status = burrow(pages, "consumer/strange/lag")["status"]
    assert {each["partition"] for each in status["partitions"]} <= {0, 1, *STRANGE}
    assert burrow(pages, "topic/orders/consumers")["consumers"] == ["billing", "strange"]


def test_a_reported_topic_has_the_partitions_that_the_cluster_reports(tmp_path: Path) -> None:
    root = str(tmp_path / "east")
    lag = [lag_row("g", "orders", 1, 5, 9), *(lag_row("g", "orders", number, 5, None) for number in STRANGE)]
    replicas = {"replicas": [1], "in_sync_replicas": [1], "leader": 1}
    reported = [{"topic": "orders", "partition": number, **replicas} for number in range(4)]
    brokers = [{"node_id": 1, "host": "b", "port": 9092, "is_controller": True}]
    write_tables(root, lag=lag, groups=[group_row("g")], topic_partitions=reported, brokers=brokers)
    pages = ShopPages(root, clock=lambda: SAMPLED_AT)
    assert burrow(pages, "topic/orders")["offsets"] == [-1, 9, -1, -1]
    assert [each["current-lag"] for each in burrow(pages, "consumer/g")["topics"]["orders"]] == [0, 4]


@pytest.mark.parametrize("partition", STRANGE)
def test_a_log_without_a_cluster_decides_no_length(partition: int, tmp_path: Path) -> None:
    root = str(tmp_path / "east")
    lag = [lag_row("g", "orders", number, 5, None, lag_method="none", lag_reason="no_sample") for number in (3, partition)]
    write_tables(root, lag=lag, groups=[group_row("g")])
    pages = ShopPages(root, clock=lambda: SAMPLED_AT)
    length = 8 if partition == 7 else 4
    assert burrow(pages, "topic/orders")["offsets"] == [-1] * length
    assert len(burrow(pages, "consumer/g")["topics"]["orders"]) == length


@pytest.mark.parametrize("page", ["", "groups", "groups/strange", "groups/deleted", "topics", "topics/orders", "clients"])
def test_pages_and_their_json_are_bounded(pages: ShopPages, page: str) -> None:
    for answer in (pages.get(page), pages.get(f"{page}.json" if page else "overview.json")):
        assert answer.status_code in ((200,) if page else (200, 404)), answer.text
        assert len(answer.content) < MOST_BYTES


def test_metrics_are_bounded(pages: ShopPages) -> None:
    answer = pages.at("/metrics")
    assert answer.status_code == 200
    assert len(answer.content) < MOST_BYTES


def test_a_missing_partition_is_called_so(pages: ShopPages) -> None:
    reasons = {
        (row["topic"], row["partition"]): row["lag_reason"] for row in pages.sql("SELECT * FROM lag WHERE group_id <> 'billing'")
    }
    assert reasons == {
        **{("orders", number): "unknown_partition" for number in STRANGE},
        ("orders", 0): None,
        ("orders", 1): None,
        ("gone", 0): "unknown_topic_or_partition",
        ("gone", 9): "unknown_topic_or_partition",
    }
    assert "the topic does not have this partition" in pages.html("groups/strange").text
    model = pages.json("topics/orders")
    assert model["figures"]["partitions"] == 2
    assert {row["partition"]: row["reason"] for row in model["partitions"]} == {
        **dict.fromkeys(STRANGE, "unknown_partition"),
        0: None,
        1: None,
    }
    assert "the topic does not have this partition" in pages.html("topics/orders").text


def test_one_missing_partition_makes_no_topic_missing(pages: ShopPages) -> None:
    rows = {row["group_id"]: row for row in pages.sql("SELECT * FROM unused_groups")}
    missing = {group: (row["topics"], row["missing_topics"]) for group, row in rows.items()}
    # none of these groups has a member
    assert missing == {"billing": (1, 0), "strange": (1, 0), "deleted": (1, 1)}


def test_an_active_group_on_a_topic_with_an_orphan_is_in_use(tmp_path: Path) -> None:
    root = str(tmp_path / "east")
    gone = {"lag_method": "none", "lag_reason": "unknown_topic_or_partition"}
    offsets = [
        {"group_id": group, "topic": topic, "partition": partition, "committed_offset": 5, "metadata": ""}
        for group, topic, partition in (
            ("active", "orders", 0),
            ("orphan", "orders", 7),
            ("last", "gone", 0),
            ("last", "gone", 1),
        )
    ]
    write_tables(
        root,
        lag=[
            lag_row("active", "orders", 0, 5, 9),
            lag_row("orphan", "orders", 7, 5, None, **gone),
            lag_row("last", "gone", 0, 5, None, **gone),
            lag_row("last", "gone", 1, 5, None, **gone),
        ],
        groups=[group_row(name, 1) for name in ("active", "orphan", "last")],
        offsets=offsets,
    )
    pages = ShopPages(root, clock=lambda: SAMPLED_AT)
    assert [row["group_id"] for row in pages.sql("SELECT group_id FROM unused_groups")] == ["last"]


def test_bodies_have_only_finite_json(pages: ShopPages) -> None:
    def refuse(name: str) -> None:
        raise ValueError(name)

    json.loads(pages.at("/v3/kafka/east/consumer/strange").text, parse_constant=refuse)
