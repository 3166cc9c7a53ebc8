"""Records of a topic with data, as librdkafka reads them up to the end of every partition."""

from confluent_kafka import Consumer, KafkaError, TopicPartition
from eventually import eventually
from live_kafka import QUIET, SeenRecord


def read_records(bootstrap: str, topic: str, partitions: int, isolation: str = "read_committed") -> list[SeenRecord]:
    """All records by partition and offset."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    records: list[SeenRecord] = []
    ended: set[int] = set()

    def poll() -> tuple[int, int]:
        for message in reader.consume(2000, 0.2):
            error, partition = message.error(), message.partition() or 0
            if error is None:
                records.append(
                    SeenRecord(partition, message.offset() or 0, message.timestamp()[1], message.key(), message.value())
                )
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
        return len(ended), len(records)

    try:
        eventually(f"{topic} is read to its end", poll, lambda seen: seen[0] == partitions)
    finally:
        reader.close()
    return sorted(records, key=lambda record: (record.partition, record.offset))


def read_topic(bootstrap: str, topic: str, partitions: int, isolation: str = "read_committed") -> list[bytes]:
    """The values of all records, by partition and offset."""
    return [record.value or b"" for record in read_records(bootstrap, topic, partitions, isolation)]
