"""Logs with open transactions that real brokers wrote, and a folder in which our coordinator takes one over.

`python tests/support/taken_over_logs.py VERSION` records tests/data/kafka-VERSION-open-transactions.tar.gz again.
"""

import sys
import tarfile
from pathlib import Path

from genuine import DATA
from live_kafka import create_topic
from transaction_scenario import PLAIN, TOPIC, transaction_client

from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.producer_files import SNAPSHOT
from pipelines.examples.log.example_log import unpack
from pipelines.examples.private.kafka.broker import PrivateBroker

#: Era of the coordinator that continues the log, by version.
ERAS = {"3.9.1": "3", "4.3.0": "4"}
OFFSETS_PARTITIONS, TRANSACTION_PARTITIONS = 4, 2
#: Ids whose transactions are open, each with the pending offset `PENDING` of its group.
OPEN = tuple(f"open-{number}" for number in range(6))
PENDING = 77
#: Its transaction is complete: offset 42 is committed.
DONE = "done"


def leave_transactions_open(bootstrap: str) -> None:
    """Commit one transaction, and leave the others open."""
    create_topic(bootstrap, TOPIC, 1)
    with transaction_client(bootstrap) as client:
        for name in (DONE, *OPEN):
            client.await_coordinator(name)
            producer = client.init(name, PLAIN)
            client.add_offsets(name, producer, PLAIN)
            client.commit_offset(name, producer, PLAIN, 42 if name == DONE else PENDING)
            if name == DONE:
                client.end(name, producer, PLAIN, commit=True)
                client.describe(name)


def record(version: str) -> None:
    """Write the archive: segments of both topics and, since the shutdown is clean, snapshots of their producers."""
    with PrivateBroker(version, offsets_partitions=OFFSETS_PARTITIONS) as broker:
        leave_transactions_open(broker.bootstrap)
        broker.stop()
        with tarfile.open(_archive(version), "w:gz") as archive:
            for topic in (OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
                for path in sorted(broker.data.glob(f"{topic}-*/*")):
                    if path.suffix in (".log", SNAPSHOT) or path.name == "partition.metadata":
                        archive.add(path, path.relative_to(broker.data))


def taken_over(version: str, into: Path) -> Path:
    """Extract the log below `into`; return the folder for the coordinator."""
    directory = into / f"kafka-{version}-open-transactions"
    with tarfile.open(_archive(version)) as archive:
        unpack(archive, directory)
    return directory


def _archive(version: str) -> Path:
    return DATA / f"kafka-{version}-open-transactions.tar.gz"


if __name__ == "__main__":
    record(sys.argv[1])
