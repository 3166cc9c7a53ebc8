"""The versions that brokers list in ApiVersions, and those of the coordinator of their era."""

import pytest
from broker_versions import differences
from wire_connection import Wire

from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ApiVersionsRequest
from pipelines.examples.private.kafka.broker import PrivateBroker

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.mark.parametrize(
    ("release", "era", "is_older"),
    [
        ("0.10.2.2", "0.10", False),
        ("1.1.1", "1", True),
        ("2.8.2", "3", True),
        ("3.9.1", "3", False),
        ("4.1.1", "4", True),
        ("4.3.0", "4", False),
    ],
)
def test_versions(release: str, era: str, is_older: bool) -> None:
    with PrivateBroker(release) as broker:
        wire = Wire(int(broker.bootstrap.rpartition(":")[2]))
        listed = wire.ask(apis.API_VERSIONS, 0, ApiVersionsRequest()).apis
        wire.close()
    assert differences(era, {each.api_key: range(each.lowest, each.highest + 1) for each in listed}, is_older=is_older) == {}
