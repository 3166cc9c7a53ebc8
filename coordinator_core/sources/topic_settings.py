"""Settings of topics that the lag of groups depends on, from DescribeConfigs."""

from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from coordinator_core.health.time_limits import LATEST_MS, UNLIMITED
from coordinator_core.log.errors import LogError
from coordinator_core.sources.described_configs import TOPIC, configs_request
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_topic import BrokerError, reason_of

_KEYS = _POLICY, _RETENTION, _BYTES, _TIMESTAMPS = "cleanup.policy", "retention.ms", "retention.bytes", "message.timestamp.type"
_DEFAULTS = {_POLICY: "delete", _RETENTION: "-1", _BYTES: "-1"}
#: Bounds the size of a response.
_TOPICS_PER_REQUEST = 2_000


class TopicSettings(NamedTuple):
    """Settings of one topic.

    - `compacted`: `cleanup.policy` contains `compact`.
    - `retention_ms`: age at which records are deleted, UNLIMITED for never; None if it does not follow from the settings, as for
      topics that are compacted only, or whose size alone is limited.
    - `log_append_time`: `message.timestamp.type` is LogAppendTime.
    - `size_limited`: `retention.bytes` limits the log, so that its start may move before `retention_ms` is over.
    - `cleanup_policy`: `cleanup.policy` as the broker reports it.
    """

    compacted: bool
    retention_ms: int | None
    log_append_time: bool
    size_limited: bool = True
    cleanup_policy: str = "delete"


class TopicSettingsReader:
    """Requests settings from any broker of the cluster of a `kafka://` address. For one thread at a time."""

    def __init__(self, address: str, options: Mapping[str, str] | None) -> None:
        self._servers = parse_address(address).servers
        self._options = dict(options or {})

    def read(self, topics: Iterable[str]) -> dict[str, TopicSettings | str]:
        """Settings by topic, or the reason why they are unknown: Kafka's name of the error in lower case.

        The user needs the ACL DescribeConfigs on a topic. Raises LogError if no broker answers.
        """
        names = sorted(set(topics))
        found: dict[str, TopicSettings | str] = {}
        if not names:
            return found
        with borrowed_connection(self._servers, self._options) as connection:
            for first in range(0, len(names), _TOPICS_PER_REQUEST):
                wanted = names[first : first + _TOPICS_PER_REQUEST]
                response = connection.send_any(configs_request(TOPIC, wanted, _KEYS))
                if isinstance(response, LogError):
                    raise response
                found |= {result.resource_name: _settings(result) for result in response.results or ()}
        return found


def _settings(result: Any) -> TopicSettings | str:
    if result.error_code != BrokerError.NONE:
        return reason_of(result.error_code)
    described = {each.name: each.value for each in result.configs or () if each.value is not None}
    values = _DEFAULTS | described
    policy = set(filter(None, (part.strip() for part in values[_POLICY].split(","))))
    return TopicSettings(
        compacted="compact" in policy,
        retention_ms=_retention_ms(policy, int(values[_RETENTION]), int(values[_BYTES])),
        log_append_time=values.get(_TIMESTAMPS) == "LogAppendTime",
        size_limited="delete" in policy and int(values[_BYTES]) >= 0,
        cleanup_policy=values[_POLICY],
    )


def _retention_ms(policy: Set[str], retention_ms: int, retention_bytes: int) -> int | None:
    """The age at which `UnifiedLog.deleteOldSegments` deletes records; an empty policy (KAFKA-19112) deletes nothing."""
    if not policy:
        return UNLIMITED
    if "delete" not in policy:
        return None
    if 0 <= retention_ms < LATEST_MS:
        return retention_ms
    return None if retention_bytes >= 0 or "compact" in policy else UNLIMITED
