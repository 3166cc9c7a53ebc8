"""Settings of topics and brokers by name, from DescribeConfigs."""

from collections.abc import Iterable
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest

from coordinator_core.log.errors import LogError
from coordinator_core.sources.kafka_connection import KafkaConnection, RequestFor
from coordinator_core.sources.kafka_topic import BrokerError, error_name

#: Resource types of Kafka.
TOPIC, _BROKER = 2, 4


def topic_configs(connection: KafkaConnection, topic: str, keys: Iterable[str]) -> dict[str, str] | str:
    """Settings of a topic that have a value, or the reason why they cannot be read: the user needs the ACL DescribeConfigs.

    Raises LogError if no broker answers.
    """
    return _settings(connection.send_any(configs_request(TOPIC, (topic,), keys)))


def broker_configs(connection: KafkaConnection, node: int, keys: Iterable[str]) -> dict[str, str] | str:
    """The same for a broker, which answers only itself: the user needs the ACL DescribeConfigs on the cluster."""
    return _settings(connection.send_all({node: configs_request(_BROKER, (str(node),), keys)})[node])


def each_broker_configs(
    connection: KafkaConnection, nodes: Iterable[int], keys: Iterable[str]
) -> dict[int, dict[str, str] | LogError | str]:
    """The same for several brokers, requested at once; the error instead of the settings of one that does not answer."""
    wanted = list(keys)
    responses = connection.send_all({node: configs_request(_BROKER, (str(node),), wanted) for node in nodes})
    return {node: each if isinstance(each, LogError) else _settings(each) for node, each in responses.items()}


def configs_request(resource_type: int, names: Iterable[str], keys: Iterable[str]) -> RequestFor:
    """A request for the settings `keys` of resources of one type."""
    kind, wanted = DescribeConfigsRequest.DescribeConfigsResource, list(keys)
    resources = [kind(resource_type=resource_type, resource_name=name, configuration_keys=wanted) for name in names]
    return lambda _versions: DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)


def _settings(response: Any) -> dict[str, str] | str:
    if isinstance(response, LogError):
        raise response
    (result,) = response.results
    if result.error_code != BrokerError.NONE:
        return error_name(result.error_code)
    return {each.name: each.value for each in result.configs or () if each.value is not None}
