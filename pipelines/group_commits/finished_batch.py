"""Progress of a Structured Streaming query → the offsets up to which it has finished its Kafka sources."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: Beginning of the description of Spark's own Kafka sources: `KafkaV2[Subscribe[orders]]`.
_KAFKA_SOURCE = "KafkaV2["


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch that a query has finished.

    Attributes:
        query_id: id of the query, which its checkpoint keeps
        run_id: id of the run, new at each start
        name: name of the query; "" without one
        batch_id: number of the batch
        offsets: (topic, partition) → the next offset to read, of all partitions of the query
    """

    query_id: str
    run_id: str
    name: str
    batch_id: int
    offsets: Mapping[tuple[str, int], int]


def finished_batch(progress_json: str, topics: Collection[str] | None = None) -> FinishedBatch | None:
    """Read `StreamingQueryProgress.json`; None if it has no offsets of a Kafka source.

    The end offset of a source is exclusive: it is what a consumer group commits. Of a partition that several sources read, as in
    a self join, the least offset counts. `topics` are those to keep, None for all.

    Raises:
        ValueError: not the JSON of a progress.
    """
    try:
        progress = json.loads(progress_json)
        offsets: dict[tuple[str, int], int] = {}
        for source in progress["sources"]:
            if str(source["description"]).startswith(_KAFKA_SOURCE):
                for place, offset in _end_offsets(source.get("endOffset"), topics).items():
                    offsets[place] = min(offset, offsets.get(place, offset))
        query, run, name = str(progress["id"]), str(progress["runId"]), progress.get("name") or ""
        return FinishedBatch(query, run, str(name), int(progress["batchId"]), offsets) if offsets else None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the progress of a query: {type(error).__name__} {error}") from error


def _end_offsets(end: Mapping[str, Mapping[str, int]] | None, topics: Collection[str] | None) -> dict[tuple[str, int], int]:
    """The offsets of one source; none before its first batch."""
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in (end or {}).items()
        if topics is None or topic in topics
        for partition, offset in partitions.items()
        if int(offset) >= 0
    }
