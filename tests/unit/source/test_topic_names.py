"""Records that make the job request the names of topic ids, according to the schemas."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from coordinator_core.codec.schema import Catalog, catalog, load_catalog
from coordinator_core.codec.topic_ids import types_with_ids_only
from pipelines.batch.topic_names import learn_topic_names
from pipelines.source.changes import SCHEMA, ChangeKind, rows

ORDERS = UUID(int=7)
NEW_TYPE = 99


def new_catalog(**topic: str) -> Catalog:
    """A catalog with one unknown record type; `topic` are the types of the fields in its value."""
    group_id = {"name": "groupId", "type": "string"}
    value = {"name": "topicPartitions", "type": "[]TopicPartitions"}
    # their dataclass has the id of a topic, or id and name
    named = {"class": "share.TopicInfo"} if "topicName" in topic else {}
    layouts = {
        "GroupKey": {"validVersions": "0", "fields": [group_id]},
        "TargetAssignmentMemberValue": {"validVersions": "0", "flexibleVersions": "0+", "fields": [value]},
        "TopicPartitions": {**named, "fields": [{"name": name, "type": kind} for name, kind in topic.items()]},
    }
    records = [{"type": NEW_TYPE, "name": "New", "key": "GroupKey", "value": "TargetAssignmentMemberValue"}]
    return load_catalog({"new.json": {"module": "modern", "records": records, "layouts": layouts}})


def test_record_types_that_have_ids_without_names() -> None:
    assert types_with_ids_only(catalog()) == {7, 8, 13, 14}


def test_a_name_beside_the_id_is_enough() -> None:
    assert types_with_ids_only(new_catalog(topicId="uuid")) == {NEW_TYPE}
    assert types_with_ids_only(new_catalog(topicId="uuid", topicName="string")) == frozenset()


@pytest.mark.parametrize(("described", "requests"), [(new_catalog(topicId="uuid"), 1), (load_catalog({}), 0)])
def test_a_new_record_type_with_topic_ids_is_named(monkeypatch: pytest.MonkeyPatch, described: Catalog, requests: int) -> None:
    monkeypatch.setattr("coordinator_core.codec.schema.catalog", lambda: described)
    calls: list[None] = []

    def names() -> dict[UUID, tuple[str, str]]:
        calls.append(None)
        return {ORDERS: ("orders", "cluster")}

    key = NEW_TYPE.to_bytes(2, "big") + b"\0\1g"
    batch = rows(ChangeKind.RECORD, 0, {"log_offset": pa.array([0]), "key": pa.array([key], pa.binary())})
    nothing_known: Any = SimpleNamespace(previous=SimpleNamespace(rows=lambda *_: pa.table({"topic_id": [], "topic": []})))
    learned = learn_topic_names(pa.Table.from_batches([batch], SCHEMA), nothing_known, names)
    assert len(calls) == requests
    assert dict(learned.new) == ({ORDERS: ("orders", "cluster")} if requests else {})
