"""The schema files, and the errors of their loader."""

import copy
from typing import Any

import pytest

from coordinator_core.codec.schema import SchemaError, VersionRange, catalog, load_catalog, snake_case

VALUE: dict[str, Any] = {
    "module": "offsets",
    "records": [{"type": 1, "name": "OffsetCommit", "key": "OffsetCommitKey", "value": "OffsetCommitValue"}],
    "layouts": {
        "OffsetCommitKey": {
            "validVersions": "0",
            "fields": [
                {"name": "group", "type": "string"},
                {"name": "topic", "type": "string"},
                {"name": "partition", "type": "int32"},
            ],
        },
        "OffsetCommitValue": {"validVersions": "0-1", "flexibleVersions": "1+", "fields": [{"name": "offset", "type": "int64"}]},
    },
}


def with_field(**attributes: str | int) -> dict[str, Any]:
    document = copy.deepcopy(VALUE)
    document["layouts"]["OffsetCommitValue"]["fields"].append(attributes)
    return {"test.json": document}


def test_the_shipped_schemas_describe_every_released_type() -> None:
    assert sorted(catalog().record_types) == [number for number in range(24) if number != 18]
    assert {of.value.highest for number, of in catalog().record_types.items() if number <= 2} == {4}
    assert {of.value.highest for number, of in catalog().record_types.items() if number > 2} == {0}


def test_a_correct_document() -> None:
    assert load_catalog(with_field(name="leaderEpoch", type="int32", versions="1", default=-1)).record_types[1].value.highest == 1


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"name": "nonsense", "type": "int32"}, "has no nonsense"),
        ({"name": "leaderEpoch", "type": "int32", "versions": "1"}, "default 0, -1 in the dataclass"),
        ({"name": "metadata", "type": "Unheard"}, "no layout named Unheard"),
        ({"name": "metadata", "type": "string", "versions": "x"}, "'x' is not a range"),
        ({"name": "metadata", "type": "string", "about": "?"}, "unknown attributes"),
        ({"name": "topicId", "type": "uuid", "tag": 0, "taggedVersions": "0+"}, "tagged where the layout is not flexible"),
        ({"name": "topicId", "type": "uuid", "tag": 0}, "tag and taggedVersions belong together"),
        ({"name": "metadata", "type": "string", "nullableVersions": "1"}, "nullableVersions are not the versions of the field"),
    ],
)
def test_mistakes_are_named(attributes: dict[str, int | str], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        load_catalog(with_field(**attributes))


def test_names_are_given_once() -> None:
    with pytest.raises(SchemaError, match="described twice"):
        load_catalog({"a.json": VALUE, "b.json": VALUE})


def test_fields_without_default_must_be_described() -> None:
    document = copy.deepcopy(VALUE)
    document["layouts"]["OffsetCommitKey"]["fields"].pop()

    with pytest.raises(SchemaError, match="does not describe partition"):
        load_catalog({"test.json": document})


@pytest.mark.parametrize(("text", "inside", "outside"), [("0-4", [0, 4], [5, -1]), ("3+", [3, 99], [2]), ("1", [1], [0, 2])])
def test_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = VersionRange.parse(text)

    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_names() -> None:
    assert snake_case("rebalanceTimeoutMs") == "rebalance_timeout_ms"
    assert snake_case("group") == "group"
