"""The versions that a coordinator of an era offers, compared with those that a broker lists in ApiVersions."""

from collections.abc import Mapping

from coordinator_core.protocol import apis
from coordinator_core.protocol.apis import APIS
from coordinator_core.state.era import ERAS

#: Era → the last release of its span; of 0.9, whose brokers have no ApiVersions, the first one that has it.
RELEASES = {"0.9": (0, 10, 0), "0.10": (0, 10, 2), "1": (2, 0), "2": (2, 3), "3": (3, 9), "4": (4, 3)}
#: APIs with all versions in every era, which limits none of their clients.
IN_EVERY_ERA = frozenset({apis.FETCH, apis.LIST_OFFSETS, apis.METADATA, apis.API_VERSIONS, apis.DESCRIBE_CLUSTER})
#: Versions of brokers that are not offered. ListOffsets v0 returns the first offsets of segments; brokers of 3.9 refuse
#: ConsumerGroupDescribe by default, and admin clients that miss it use DescribeGroups at once.
NOT_OFFERED = {(apis.LIST_OFFSETS, era): {0} for era in ERAS if era != "4"} | {(apis.CONSUMER_GROUP_DESCRIBE, "3"): {0}}


def differences(era: str, listed: Mapping[int, range], *, is_older: bool = False) -> dict[str, tuple[set[int], set[int]]]:
    """API → versions of the broker that the era lacks, and of the era that the broker lacks.

    `is_older` is a release before the last one of the era: it lacks versions of the era.
    """
    found = {}
    for api in APIS.values():
        brokers = set(listed.get(api.number, ())) - NOT_OFFERED.get((api, era), set())
        offered = set(api.versions.offered(era))
        more = set() if is_older or api in IN_EVERY_ERA else offered - brokers
        if more or brokers - offered:
            found[api.name] = brokers - offered, more
    return found
