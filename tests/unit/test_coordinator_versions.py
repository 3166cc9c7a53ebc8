"""The table of protocol versions: every field or rule begins in a version that exists."""

import pytest

from coordinator_core.coordinator.messages.versions import BROKER_VERSIONS, SINCE, VERSIONS, ApiKey, known, means, offered
from coordinator_core.wire.apis import ClusterApiKey, cluster_versions


def test_what_a_field_begins_in_exists() -> None:
    outside = [(api, what) for (api, what), since in SINCE.items() if not 0 <= since <= VERSIONS[api].highest]
    assert outside == []
    assert all(v.flexible is None or v.lowest <= v.flexible <= v.highest for v in VERSIONS.values())


def test_member_ids_are_required_since_version_4() -> None:
    assert [means(ApiKey.JOIN_GROUP, version, "require_known_member_id") for version in (3, 4)] == [False, True]
    with pytest.raises(KeyError):
        means(ApiKey.JOIN_GROUP, 4, "nothing")


@pytest.mark.parametrize(
    ("era", "join", "commit", "fetch", "apis"),
    [
        ("0.9", (0, 0), (2, 2), (1, 1), 9),
        ("0.10", (0, 1), (2, 2), (1, 2), 9),
        ("1", (0, 3), (2, 4), (1, 4), 11),
        ("2", (0, 5), (2, 7), (1, 5), 11),
        ("3", (0, 9), (2, 9), (1, 9), 13),
        ("4", (0, 9), (2, 10), (1, 10), 14),
    ],
)
def test_what_a_coordinator_offers(
    era: str, join: tuple[int, int], commit: tuple[int, int], fetch: tuple[int, int], apis: int
) -> None:
    """Versions of 0.10.2.2, 2.0.1, 2.3.1, 3.9.1 and 4.3.0, as far as current clients use them."""
    versions = offered(era)
    assert len(versions) == apis
    found = [(versions[api].start, versions[api][-1]) for api in (ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH)]
    assert found == [join, commit, fetch]
    assert all(VERSIONS[api].lowest <= each.start <= each[-1] <= VERSIONS[api].highest for api, each in versions.items())


def test_what_an_era_knows() -> None:
    assert [era for era in BROKER_VERSIONS if known(era, ApiKey.JOIN_GROUP, "group_instance_id")] == ["2", "3", "4"]
    assert [era for era in BROKER_VERSIONS if known(era, ApiKey.OFFSET_FETCH, "require_stable")] == ["3", "4"]
    assert not known("0.10", ApiKey.TXN_OFFSET_COMMIT, "member_id")


@pytest.mark.parametrize(
    ("era", "produce", "fetch"), [("0.9", 2, 0), ("0.10", 2, 0), ("1", 6, 0), ("2", 7, 0), ("3", 11, 0), ("4", 13, 4)]
)
def test_what_it_offers_beside_groups(era: str, produce: int, fetch: int) -> None:
    """Java clients before 2.8 and franz-go require Produce; Sarama sends the Fetch of its configured Kafka release."""
    versions = cluster_versions(era)
    assert versions[ClusterApiKey.PRODUCE] == range(produce + 1)
    assert versions[ClusterApiKey.FETCH].start == fetch
