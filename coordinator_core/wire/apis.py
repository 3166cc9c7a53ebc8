"""Which APIs and versions are served and spoken."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from coordinator_core.coordinator.messages.versions import VERSIONS, ApiKey, Versions


class ClusterApiKey(IntEnum):
    """APIs beside those of the group coordinator that its clients cannot do without."""

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

#: Produce as brokers of an era list it (`ProduceRequest`, `ProduceRequest.json`). Those of 4.x list versions 0–2, which they
#: do not serve, because librdkafka takes compression for unsupported where they are missing (KAFKA-18659).
_PRODUCE: Mapping[str, range] = MappingProxyType(
    {"0.9": range(3), "0.10": range(3), "1": range(7), "2": range(8), "3": range(12), "4": range(14)}
)
#: Eras whose brokers serve no Fetch below v4 (KIP-896).
_WITHOUT_OLD_FETCH = frozenset({"4"})
_FIRST_FETCH_OF_4_0 = 4


def cluster_versions(era: str) -> Mapping[ClusterApiKey, range]:
    """The versions of each API beside the coordinator's that are served in an era. KeyError for an era that is none."""
    versions = {api: range(each.lowest, each.highest + 1) for api, each in CLUSTER_VERSIONS.items()}
    versions[ClusterApiKey.PRODUCE] = _PRODUCE[era]
    if era in _WITHOUT_OLD_FETCH:
        versions[ClusterApiKey.FETCH] = versions[ClusterApiKey.FETCH][_FIRST_FETCH_OF_4_0:]
    return versions


AnyApiKey = ApiKey | ClusterApiKey

_VERSIONS: tuple[tuple[AnyApiKey, Versions], ...] = (*VERSIONS.items(), *CLUSTER_VERSIONS.items())
#: Every API that can be read and written here, by its number.
SERVED: Mapping[int, tuple[AnyApiKey, Versions]] = MappingProxyType(
    {int(api): (api, versions) for api, versions in sorted(_VERSIONS)}
)
