"""The APIs and versions that can be read and written, by era."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from coordinator_core.coordinator.messages.versions import VERSIONS, ApiKey, Versions


class ClusterApiKey(IntEnum):
    """APIs outside of the group coordinator that its clients need."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    API_VERSIONS = 18
    DESCRIBE_CLUSTER = 60


#: The versions of Kafka 4.3, and the older ones of Produce and Fetch that brokers before 4.0 serve.
CLUSTER_VERSIONS: Mapping[ClusterApiKey, Versions] = MappingProxyType(
    {
        ClusterApiKey.PRODUCE: Versions(0, 13, 9),
        ClusterApiKey.FETCH: Versions(0, 18, 12),
        ClusterApiKey.LIST_OFFSETS: Versions(1, 11, 6),
        ClusterApiKey.METADATA: Versions(0, 13, 9),
        ClusterApiKey.API_VERSIONS: Versions(0, 4, 3),
        ClusterApiKey.DESCRIBE_CLUSTER: Versions(0, 2, 0),
    }
)

#: Versions of Produce that the brokers of an era list (`ProduceRequest`, `ProduceRequest.json`). Brokers of 4.x list versions 0–2
#: without serving them, because librdkafka disables compression if they are missing (KAFKA-18659).
_PRODUCE: Mapping[str, range] = MappingProxyType(
    {"0.9": range(3), "0.10": range(3), "1": range(7), "2": range(8), "3": range(12), "4": range(14)}
)
#: Eras whose brokers serve no Fetch below v4 (KIP-896).
_WITHOUT_OLD_FETCH = frozenset({"4"})
_FIRST_FETCH_OF_4_0 = 4


def cluster_versions(era: str) -> Mapping[ClusterApiKey, range]:
    """Return the served versions of the APIs in `ClusterApiKey` for an era. Raises KeyError for an unknown era."""
    versions = {api: range(each.lowest, each.highest + 1) for api, each in CLUSTER_VERSIONS.items()}
    versions[ClusterApiKey.PRODUCE] = _PRODUCE[era]
    if era in _WITHOUT_OLD_FETCH:
        versions[ClusterApiKey.FETCH] = versions[ClusterApiKey.FETCH][_FIRST_FETCH_OF_4_0:]
    return versions


AnyApiKey = ApiKey | ClusterApiKey

_VERSIONS: tuple[tuple[AnyApiKey, Versions], ...] = (*VERSIONS.items(), *CLUSTER_VERSIONS.items())
#: API number → every API that can be read and written here.
SERVED: Mapping[int, tuple[AnyApiKey, Versions]] = MappingProxyType(
    {int(api): (api, versions) for api, versions in sorted(_VERSIONS)}
)
