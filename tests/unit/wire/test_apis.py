"""The table of APIs: versions, fields and rules by version, and that every API has a codec and a handler."""

import pytest
from broker_versions import RELEASES, differences
from client_codecs import ALL_CODECS
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from coordinator_core.group_coordinator.shard import HANDLERS as COORDINATOR_HANDLERS
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import CoordinatorApi, NodeRequest, TransactionApi
from coordinator_core.protocol.apis import APIS, offered_versions
from coordinator_core.service.topics.cluster import HANDLERS as CLUSTER_HANDLERS
from coordinator_core.service.topics.topic_service import HANDLERS as TOPIC_HANDLERS
from coordinator_core.state.era import ERAS
from coordinator_core.transaction_coordinator.shard import HANDLERS as TRANSACTION_HANDLERS
from coordinator_core.wire.server_side import CODECS


def test_every_api_has_a_codec_and_a_handler() -> None:
    assert set(CODECS) == set(ALL_CODECS) == set(APIS.values())
    coordinator = {api.request for api in APIS.values() if isinstance(api, CoordinatorApi)}
    assert set(COORDINATOR_HANDLERS) == coordinator
    transactions = {api.request for api in APIS.values() if isinstance(api, TransactionApi)}
    assert set(TRANSACTION_HANDLERS) == transactions
    of_nodes = {api.request for api in APIS.values()} - coordinator - transactions
    assert CLUSTER_HANDLERS.keys() | TOPIC_HANDLERS.keys() == of_nodes
    assert CLUSTER_HANDLERS.keys() & TOPIC_HANDLERS.keys() == set()
    assert all(issubclass(request, NodeRequest) for request in of_nodes)


def test_versions_are_consistent() -> None:
    for api in APIS.values():
        versions = api.versions
        assert [name for name, first in api.first_versions.items() if not 0 <= first <= versions.highest] == []
        assert versions.flexible is None or versions.lowest <= versions.flexible <= versions.highest
        assert set(versions.brokers) <= set(ERAS)
        assert versions.brokers["4"].stop - 1 == versions.highest
        assert all(set(versions.offered(era)) <= set(versions.all) for era in ERAS)


def test_member_ids_are_required_since_version_4() -> None:
    assert [apis.JOIN_GROUP.has_field(version, "require_known_member_id") for version in (3, 4)] == [False, True]
    with pytest.raises(KeyError):
        apis.JOIN_GROUP.has_field(4, "nothing")


@pytest.mark.parametrize(
    ("era", "join", "commit", "fetch", "count"),
    [
        ("0.9", (0, 0), (0, 2), (0, 1), 9),
        ("0.10", (0, 1), (0, 2), (0, 2), 9),
        ("1", (0, 3), (0, 4), (0, 4), 12),
        ("2", (0, 5), (0, 7), (0, 5), 12),
        ("3", (0, 9), (0, 9), (0, 9), 13),
        ("4", (0, 9), (2, 10), (1, 10), 14),
    ],
)
def test_offered_versions_of_groups(
    era: str, join: tuple[int, int], commit: tuple[int, int], fetch: tuple[int, int], count: int
) -> None:
    """Versions of 0.10.0, 0.10.2, 2.0.1, 2.3.1, 3.9.1 and 4.3.0."""
    found = [api.versions.offered(era) for api in (apis.JOIN_GROUP, apis.OFFSET_COMMIT, apis.OFFSET_FETCH)]
    assert [(versions.start, versions[-1]) for versions in found] == [join, commit, fetch]
    of_groups = [api for api in APIS.values() if isinstance(api, CoordinatorApi) or api is apis.FIND_COORDINATOR]
    assert sum(bool(api.versions.offered(era)) for api in of_groups) == count


@pytest.mark.parametrize("era", ERAS)
def test_an_era_offers_the_versions_that_its_brokers_list(era: str) -> None:
    """kafka-python has the responses of real brokers to ApiVersions."""
    listed = {number: range(lowest, highest + 1) for number, (lowest, highest) in BROKER_API_VERSIONS[RELEASES[era]].items()}
    assert differences(era, listed) == {}


@pytest.mark.parametrize(
    ("era", "produce", "fetch"), [("0.9", 2, 0), ("0.10", 2, 0), ("1", 6, 0), ("2", 7, 0), ("3", 11, 0), ("4", 13, 4)]
)
def test_offered_versions_of_produce_and_fetch(era: str, produce: int, fetch: int) -> None:
    """Java clients before 2.8 and franz-go require Produce; Sarama sends the Fetch of its configured Kafka release."""
    versions = offered_versions(era)
    assert versions[apis.PRODUCE.number] == range(produce + 1)
    assert versions[apis.FETCH.number].start == fetch
