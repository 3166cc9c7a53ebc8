"""DescribeConfigs of groups."""

import pytest

from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.group_configs import describe_configs
from coordinator_core.protocol.configs import ConfigEntry, ConfigSource, ConfigType, DescribeConfigsRequest, ResourceType
from coordinator_core.protocol.error_code import ErrorCode

GROUP = ResourceType.GROUP


def test_a_group_has_the_settings_of_the_coordinator() -> None:
    response = describe_configs(CoordinatorConfig(group_max_size=9), DescribeConfigsRequest(GROUP, "billing"))
    assert (response.error, response.resource_type, response.resource_name) == (ErrorCode.NONE, GROUP, "billing")
    found = {entry.name: (entry.value, entry.source) for entry in response.entries}
    assert found == {
        "group.initial.rebalance.delay.ms": ("3000", ConfigSource.DEFAULT_CONFIG),
        "group.max.session.timeout.ms": ("1800000", ConfigSource.DEFAULT_CONFIG),
        "group.max.size": ("9", ConfigSource.STATIC_BROKER_CONFIG),
        "group.min.session.timeout.ms": ("6000", ConfigSource.DEFAULT_CONFIG),
        "offset.metadata.max.bytes": ("4096", ConfigSource.DEFAULT_CONFIG),
        "offsets.retention.minutes": ("10080", ConfigSource.DEFAULT_CONFIG),
    }


def test_requested_keys_only() -> None:
    request = DescribeConfigsRequest(GROUP, "billing", ("group.max.session.timeout.ms", "unknown"))
    entry = ConfigEntry("group.max.session.timeout.ms", "300000", ConfigSource.DEFAULT_CONFIG, ConfigType.INT)
    assert describe_configs(CoordinatorConfig(era="1"), request).entries == (entry,)


def test_the_group_size_exists_since_2_2() -> None:
    eras = ("1", "2", "3", "4")
    names = [
        {entry.name for entry in describe_configs(CoordinatorConfig(era=era), DescribeConfigsRequest(GROUP, "g")).entries}
        for era in eras
    ]
    assert ["group.max.size" in each for each in names] == [False, True, True, True]


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [(ResourceType.TOPIC, "orders", "resource type 2 has no configs here: use 32"), (99, "", "use 32"), (GROUP, "", "is empty")],
)
def test_other_resources_are_invalid(kind: int, name: str, message: str) -> None:
    response = describe_configs(CoordinatorConfig(), DescribeConfigsRequest(kind, name))
    assert (response.error, response.resource_type, response.resource_name) == (ErrorCode.INVALID_REQUEST, kind, name)
    assert message in (response.error_message or "")
