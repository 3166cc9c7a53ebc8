"""Burrow's HTTP API from a real server: every key with its type, as scripts for Burrow read them."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import NoneType
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from dashboards import Dashboard, dashboard
from lag_tables import SAMPLED_AT, group_row, lag_row, write_tables
from log_builder import Log
from sampled_topics import SampledTopics, sampled
from table_logs import applied

from coordinator_core.state.era import Era

HOSTILE = 'a/b "c"\\\n%2F?x=1#é'
POINT = {"offset": int, "timestamp": int, "observedAt": int, "lag": (int, NoneType)}
PARTITION = {
    "topic": str,
    "partition": int,
    "owner": str,
    "client_id": str,
    "status": str,
    "start": POINT,
    "end": POINT,
    "current_lag": int,
    "complete": float,
}
STATUS = {
    "cluster": str,
    "group": str,
    "status": str,
    "complete": float,
    "partitions": [PARTITION],
    "partition_count": int,
    "maxlag": PARTITION,
    "totallag": int,
}


def frame(**payload: Any) -> dict[str, Any]:
    """Keys of a response with this payload."""
    return {"error": bool, "message": str, **payload, "request": {"url": str, "host": str}}


def expect_shape(value: Any, shape: Any, where: str = "$") -> None:
    """AssertionError unless `value` has exactly the keys and types of `shape`."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        assert list(value) == list(shape), where
        for key, part in shape.items():
            expect_shape(value[key], part, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for number, part in enumerate(value):
            expect_shape(part, shape[0], f"{where}[{number}]")
    else:
        kinds = shape if isinstance(shape, tuple) else (shape,)
        assert type(value) in kinds, f"{where} is {value!r}"


def status_row(group: str, status: str, **more: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "status": status,
        "detail": "",
        "findings": [],
        "burrow_status": status,
        "partitions": 0,
        "unknown_partitions": 0,
        "complete": 1.0,
        "evaluated_at": SAMPLED_AT,
        **more,
    }


def partition_row(group: str, partition: int, status: str, lag: int, **more: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "topic": "orders",
        "partition": partition,
        "status": status,
        "rule": "burrow_6",
        "start_offset": 900,
        "start_timestamp": SAMPLED_AT - timedelta(seconds=90),
        "start_lag": 3,
        "end_offset": 990,
        "end_timestamp": SAMPLED_AT,
        "current_lag": lag,
        "window_rows": 10,
        "window_seconds": 90.0,
        "complete": 1.0,
        "evaluated_at": SAMPLED_AT,
        **more,
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = str(tmp_path_factory.mktemp("tables") / "prod")
    owner = {"consumer_id": "m1", "member_host": "/10.0.0.1", "client_id": "w1"}
    commits = [
        {
            "group_id": "billing",
            "topic": "orders",
            "partition": 2,
            "change": "commit",
            "committed_offset": 900 + 9 * n,
            "commits": 1,
            "commit_timestamp": SAMPLED_AT - timedelta(seconds=90 - 9 * n),
            "log_offset": n,
        }
        for n in (0, 10)
    ]
    write_tables(
        folder,
        groups=[group_row("billing", 1), group_row(HOSTILE), group_row("idle")],
        lag=[
            lag_row("billing", "orders", 0, 10, 10),
            lag_row("billing", "orders", 2, 990, 1004, **owner),
            lag_row(HOSTILE, "orders", 0, 3, 10),
        ],
        offset_history=commits,
        group_status=[
            status_row("billing", "WARN", partitions=2, total_lag=14, max_lag=14, max_lag_topic="orders", max_lag_partition=2),
            status_row(HOSTILE, "OK", partitions=1, total_lag=7),
            status_row("idle", "NOTFOUND"),
        ],
        partition_status=[
            partition_row("billing", 0, "OK", 0, end_lag=None),
            partition_row("billing", 2, "WARN", 14, end_lag=12, owner="/10.0.0.1", client_id="w1"),
            partition_row(HOSTILE, 0, "OK", 7, end_lag=7),
        ],
        brokers=[{"node_id": 1, "host": "one", "port": 9092, "is_controller": True}],
    )
    with dashboard(folder) as running:
        yield running


def body(response: httpx.Response, code: int = 200) -> Any:
    assert response.status_code == code
    assert response.headers["content-type"] == "application/json"
    return response.json()


def test_lag_has_the_shape_of_burrow(server: Dashboard) -> None:
    found = body(server.get("/v3/kafka/prod/consumer/billing/lag"))
    expect_shape(found, frame(status=STATUS))
    assert (found["error"], found["message"]) == (False, "consumer status returned")
    assert found["request"]["url"] == "/v3/kafka/prod/consumer/billing/lag"
    status = found["status"]
    assert (status["status"], status["totallag"], status["partition_count"]) == ("WARN", 14, 2)
    assert [(each["partition"], each["status"]) for each in status["partitions"]] == [(0, "OK"), (2, "WARN")]
    assert status["maxlag"] == status["partitions"][1]
    assert status["maxlag"] == {
        "topic": "orders",
        "partition": 2,
        "owner": "/10.0.0.1",
        "client_id": "w1",
        "status": "WARN",
        "start": {"offset": 900, "timestamp": 1795348710000, "observedAt": 1795348710000, "lag": 3},
        "end": {"offset": 990, "timestamp": 1795348800000, "observedAt": 1795348800000, "lag": 12},
        "current_lag": 14,
        "complete": 1.0,
    }
    assert status["partitions"][0]["end"]["lag"] is None
    assert (status["partitions"][0]["owner"], status["partitions"][0]["client_id"]) == ("", "")


def test_status_has_only_partitions_that_are_not_ok(server: Dashboard) -> None:
    complete = body(server.get("/v3/kafka/prod/consumer/billing/lag"))["status"]
    found = body(server.get("/v3/kafka/prod/consumer/billing/status"))
    expect_shape(found, frame(status=STATUS))
    assert found["status"] == {**complete, "partitions": complete["partitions"][1:]}
    (ok,) = [body(server.get(f"/v3/kafka/prod/consumer/{quote(HOSTILE, safe='')}/status"))["status"]]
    assert (ok["status"], ok["partitions"], ok["maxlag"], ok["totallag"]) == ("OK", [], None, 7)


@pytest.mark.parametrize("path", ["prod/consumer/nobody", "prod/consumer/idle", "elsewhere/consumer/billing"])
@pytest.mark.parametrize("kind", ["status", "lag"])
def test_an_unknown_group_is_404_with_a_body(path: str, kind: str, server: Dashboard) -> None:
    cluster, _, group = path.split("/")
    found = body(server.get(f"/v3/kafka/{path}/{kind}"), 404)
    expect_shape({**found, "status": {**found["status"], "maxlag": None}}, frame(status={**STATUS, "maxlag": NoneType}))
    assert found["error"] is False
    assert found["status"] == {
        "cluster": cluster,
        "group": group,
        "status": "NOTFOUND",
        "complete": 1.0,
        "partitions": [],
        "partition_count": 0,
        "maxlag": None,
        "totallag": 0,
    }


def test_consumer_detail(server: Dashboard) -> None:
    found = body(server.get("/v3/kafka/prod/consumer/billing"))
    partition = {"offsets": [POINT], "owner": str, "client_id": str, "current-lag": int}
    expect_shape(found, frame(topics={"orders": [partition]}))
    first, without_commit, last = found["topics"]["orders"]
    assert first["offsets"] == []
    assert without_commit == {"offsets": [], "owner": "", "client_id": "", "current-lag": 0}
    assert [(each["offset"], each["lag"]) for each in last["offsets"]] == [(900, 3), (990, 12)]
    assert (last["owner"], last["client_id"], last["current-lag"]) == ("/10.0.0.1", "w1", 14)


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("", {"clusters": [str]}),
        ("/prod/topic", {"topics": [str]}),
        ("/prod/topic/orders", {"offsets": [int]}),
        ("/prod/topic/orders/consumers", {"consumers": [str]}),
        ("/prod/consumer", {"consumers": [str]}),
        (
            "/prod",
            {
                "module": {
                    "class-name": str,
                    "servers": [str],
                    "client-profile": {
                        "name": str,
                        "client-id": str,
                        "kafka-version": str,
                        "tls": NoneType,
                        "sasl": NoneType,
                    },
                    "topic-refresh": int,
                    "offset-refresh": int,
                }
            },
        ),
    ],
)
def test_lists_and_details(path: str, shape: dict[str, Any], server: Dashboard) -> None:
    found = body(server.get(f"/v3/kafka{path}"))
    expect_shape(found, frame(**shape))
    assert found["error"] is False


def test_values_of_lists(server: Dashboard) -> None:
    def payload(path: str, key: str) -> Any:
        return body(server.get(f"/v3/kafka{path}"))[key]

    assert payload("", "clusters") == ["prod"]
    assert payload("/prod/topic", "topics") == ["orders"]
    assert payload("/prod/topic/orders", "offsets") == [10, -1, 1004]
    assert payload("/prod/consumer", "consumers") == sorted([HOSTILE, "billing"])
    assert payload("/prod/topic/orders/consumers", "consumers") == sorted([HOSTILE, "billing"])
    assert payload("/prod", "module")["servers"] == ["one:9092"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/elsewhere", "cluster module not found"),
        ("/elsewhere/topic", "cluster not found"),
        ("/elsewhere/consumer", "cluster not found"),
        ("/prod/topic/nothing", "cluster or topic not found"),
        ("/elsewhere/topic/orders", "cluster or topic not found"),
        ("/prod/consumer/nobody", "cluster or consumer not found"),
    ],
)
def test_unknown_names_are_404_without_a_payload(path: str, message: str, server: Dashboard) -> None:
    found = body(server.get(f"/v3/kafka{path}"), 404)
    expect_shape(found, frame())
    assert (found["error"], found["message"]) == (True, message)


@pytest.mark.parametrize("path", ["/v3/config", "/v3/config/storage", "/v3/config/notifier/x", "/v3/admin/loglevel"])
def test_burrows_own_configuration_is_not_here(path: str, server: Dashboard) -> None:
    expect_shape(body(server.get(path), 404), frame())


@pytest.mark.parametrize("path", ["/v3/kafka/prod/consumer/billing", "/v3/kafka/prod/consumer/billing/topic/orders"])
def test_nothing_is_deleted(path: str, server: Dashboard) -> None:
    response = httpx.delete(f"{server.url}{path}")
    found = body(response, 405)
    expect_shape(found, frame())
    assert found["error"] is True
    assert response.headers["allow"] == "GET, HEAD"
    assert body(server.get("/v3/kafka/prod/consumer/billing/status"))["status"]["status"] == "WARN"


def test_names_with_every_character(server: Dashboard) -> None:
    name = quote(HOSTILE, safe="")
    found = body(server.get(f"/v3/kafka/prod/consumer/{name}/lag"))
    assert (found["status"]["group"], found["status"]["totallag"]) == (HOSTILE, 7)
    assert body(server.get(f"/v3/kafka/prod/consumer/{name}"))["topics"]["orders"][0]["current-lag"] == 7


def test_admin(server: Dashboard) -> None:
    for path, text in (("/burrow/admin", "GOOD"), ("/burrow/admin/ready", "READY")):
        response = server.get(path)
        assert (response.status_code, response.text) == (200, text)


def test_status_of_sampled_tables(tmp_path: Path) -> None:
    """The same from a log and samples, with the status that the job computes."""
    log = Log()
    for offset in range(1, 4):
        log.commit(0, offset, group="billing", topic="orders")
    folder = str(tmp_path / "prod")
    applied(log, Era.named("4"), [1, 2, 3], folder, again=False)
    sampled(folder, SampledTopics(orders=9))
    with dashboard(folder) as running:
        found = body(running.get("/v3/kafka/prod/consumer/billing/lag"))
        expect_shape(found, frame(status=STATUS))
        assert (found["status"]["totallag"], found["status"]["partition_count"]) == (6, 1)
        assert found["status"]["partitions"][0]["end"]["offset"] == 3
        window = body(running.get("/v3/kafka/prod/consumer/billing"))["topics"]["orders"][0]["offsets"]
        assert [each["offset"] for each in window] == [1, 2, 3]
