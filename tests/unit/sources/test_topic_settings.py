"""Settings of topics from DescribeConfigs: when records are deleted, and when they never are."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator_core.health.time_limits import UNLIMITED
from coordinator_core.sources import topic_settings
from coordinator_core.sources.topic_settings import TopicSettings, TopicSettingsReader

WEEK_MS = 604_800_000


class Broker:
    """Answers DescribeConfigs with these settings of `orders`."""

    def __init__(self, configs: dict[str, str | None]) -> None:
        self.configs = configs

    def send_any(self, _request: Any) -> Any:
        configs = [SimpleNamespace(name=name, value=value) for name, value in self.configs.items()]
        return SimpleNamespace(results=[SimpleNamespace(error_code=0, resource_name="orders", configs=configs)])


def settings(monkeypatch: pytest.MonkeyPatch, configs: dict[str, str | None]) -> TopicSettings:
    @contextmanager
    def connection(*_: Any) -> Iterator[Broker]:
        yield Broker(configs)

    monkeypatch.setattr(topic_settings, "borrowed_connection", connection)
    found = TopicSettingsReader("kafka://broker:9092/__consumer_offsets", None).read(["orders"])["orders"]
    assert isinstance(found, TopicSettings)
    return found


@pytest.mark.parametrize(
    ("policy", "retention", "size", "expected"),
    [
        ("delete", str(WEEK_MS), "-1", WEEK_MS),
        ("compact, delete", str(WEEK_MS), "-1", WEEK_MS),
        (None, str(WEEK_MS), None, WEEK_MS),
        ("delete", "0", "-1", 0),
        # KAFKA-19112: since 4.2 an empty list is allowed, and brokers delete nothing
        ("", str(WEEK_MS), "-1", UNLIMITED),
        ("", "-1", "1000", UNLIMITED),
        # Kafka Streams' repartition topics
        ("delete", "-1", "-1", UNLIMITED),
        ("delete", str(2**63 - 1), "-1", UNLIMITED),
        ("delete", str(2**62), "-1", UNLIMITED),
        # the age at which the size makes the broker delete a record does not follow from the settings
        ("delete", "-1", "1000", None),
        ("delete", str(2**63 - 1), "1000", None),
        ("delete", str(2**62), "1000", None),
        # a later record with the same key replaces a record at any time
        ("compact", "-1", "-1", None),
        ("compact", str(WEEK_MS), "-1", None),
        ("compact,delete", "-1", "-1", None),
    ],
)
def test_when_records_are_deleted(
    policy: str | None, retention: str, size: str | None, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = {"cleanup.policy": policy, "retention.ms": retention, "retention.bytes": size}
    found = settings(monkeypatch, configs)
    size_limited = policy == "delete" and size == "1000"
    assert found == TopicSettings(
        "compact" in (policy or ""),
        expected,
        log_append_time=False,
        size_limited=size_limited,
        cleanup_policy="delete" if policy is None else policy,
    )
