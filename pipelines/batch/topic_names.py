"""Names of topic ids: from the tables, from the commits of the batch, and from other sources."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import pyarrow as pa

from coordinator_core.codec import schema
from coordinator_core.codec.topic_ids import types_with_ids_only
from coordinator_core.codec.uuids import uuid_from_text, uuid_text
from pipelines.batch.context import BatchContext
from pipelines.source.changes import ChangeKind, of_kind

#: Requests names that are not in the log: id → (name, learned_from).
NameSource = Callable[[], Mapping[UUID, tuple[str, str]]]


@dataclass
class TopicNames:
    """Names of topic ids, and those new in this batch. A topic keeps its id, so the name of an id never changes."""

    known: dict[UUID, str] = field(default_factory=dict)
    new: dict[UUID, tuple[str, str]] = field(default_factory=dict)

    def add(self, found: Mapping[UUID, tuple[str, str]]) -> None:
        """Add names, each with its source."""
        for uuid, (name, learned_from) in found.items():
            if uuid not in self.known:
                self.known[uuid] = name
                self.new[uuid] = (name, learned_from)

    def rows(self, batch_id: int) -> list[dict[str, object]]:
        """Build the rows of `topic_ids` for the new names."""
        return [
            {"topic_id": uuid_text(uuid), "topic": name, "learned_from": learned_from, "batch_id": batch_id}
            for uuid, (name, learned_from) in self.new.items()
        ]


def learn_topic_names(changed: pa.Table, context: BatchContext, name_source: NameSource) -> TopicNames:
    """Collect the names for the batch. `name_source` is called only if records of the batch have topic ids without names."""
    known = context.previous.rows("topic_ids", ["topic_id", "topic"]).to_pylist()
    names = TopicNames({uuid_from_text(row["topic_id"]): row["topic"] for row in known})
    logged = of_kind(changed, ChangeKind.TOPIC_ID).select(["topic_id", "topic", "detail"]).to_pylist()
    names.add({uuid_from_text(row["topic_id"]): (row["topic"], row["detail"] or "offset_commit") for row in logged})
    keys = of_kind(changed, ChangeKind.RECORD)["key"].to_pylist()
    by_id = types_with_ids_only(schema.catalog())
    if any(key is not None and int.from_bytes(key[:2], "big") in by_id for key in keys):
        names.add(name_source())
    return names
