"""Which APIs and versions are served and spoken."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from coordinator_core.coordinator.messages.versions import VERSIONS, ApiKey, Versions


class ClusterApiKey(IntEnum):
    """APIs beside those of the group coordinator that its clients cannot do without."""

    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    API_VERSIONS = 18
    DESCRIBE_CLUSTER = 60


#: The versions of Kafka 4.3.
CLUSTER_VERSIONS: Mapping[ClusterApiKey, Versions] = MappingProxyType(
    {
        ClusterApiKey.FETCH: Versions(4, 18, 12),
        ClusterApiKey.LIST_OFFSETS: Versions(1, 11, 6),
        ClusterApiKey.METADATA: Versions(0, 13, 9),
        ClusterApiKey.API_VERSIONS: Versions(0, 4, 3),
        ClusterApiKey.DESCRIBE_CLUSTER: Versions(0, 2, 0),
    }
)

AnyApiKey = ApiKey | ClusterApiKey

_VERSIONS: tuple[tuple[AnyApiKey, Versions], ...] = (*VERSIONS.items(), *CLUSTER_VERSIONS.items())
#: Every API that can be read and written here, by its number.
SERVED: Mapping[int, tuple[AnyApiKey, Versions]] = MappingProxyType(
    {int(api): (api, versions) for api, versions in sorted(_VERSIONS)}
)
