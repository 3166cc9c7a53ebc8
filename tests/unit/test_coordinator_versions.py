"""The table of protocol versions: every field or rule begins in a version that exists."""

import pytest

from coordinator_core.coordinator.messages.versions import SINCE, VERSIONS, ApiKey, means


def test_what_a_field_begins_in_exists() -> None:
    outside = [(api, what) for (api, what), since in SINCE.items() if not 0 <= since <= VERSIONS[api].highest]
    assert outside == []
    assert all(v.flexible is None or v.lowest <= v.flexible <= v.highest for v in VERSIONS.values())


def test_member_ids_are_required_since_version_4() -> None:
    assert [means(ApiKey.JOIN_GROUP, version, "require_known_member_id") for version in (3, 4)] == [False, True]
    with pytest.raises(KeyError):
        means(ApiKey.JOIN_GROUP, 4, "nothing")
