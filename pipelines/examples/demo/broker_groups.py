"""`grouplake demo --broker`: a private Kafka broker, real consumers, the job on its log, and queries of the tables."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.examples.demo.demo_job import job_options
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.distribution import version_tuple
from pipelines.examples.private.kafka.scenario import play
from pipelines.job import job
from pipelines.query.engine import Snapshot
from pipelines.query.output import to_stdout
from pipelines.runtime.progress import print_progress

QUERIES = {
    "groups": "SELECT group_id, group_type, state, generation, protocol, member_count FROM groups ORDER BY group_id",
    "assignments": "SELECT group_id, client_id, topic, partition FROM assignments ORDER BY group_id, topic, partition LIMIT 12",
    "committed offsets, as OffsetFetch returns them": (
        "SELECT group_id, topic, partition, committed_offset, producer_id FROM committed_offsets "
        "ORDER BY group_id, topic, partition LIMIT 12"
    ),
    "rewinds": (
        "SELECT group_id, topic, partition, committed_offset, min_offset, commits FROM offset_history WHERE change = 'rewind'"
    ),
    "group changes": (
        "SELECT group_id, change, generation, count(*) AS n FROM group_history "
        "GROUP BY group_id, change, generation ORDER BY group_id, generation, change LIMIT 15"
    ),
    "offsets of open transactions": (
        "SELECT producer_id, group_id, topic, partition, committed_offset FROM pending_offsets ORDER BY partition"
    ),
    "next expirations": (
        "SELECT group_id, topic, min(expires_at) AS first FROM expiring_offsets WHERE expires_at IS NOT NULL "
        "GROUP BY group_id, topic ORDER BY first LIMIT 5"
    ),
}


def run_demo_with_broker(version: str, tables: str | None) -> None:
    """Run the demo with a broker of `version`. The tables are kept in `tables`; if None, they are removed at the end."""
    with _folder(tables) as folder:
        print_progress(f"starting a private Kafka {version}")
        with PrivateBroker(version, progress=print_progress) as broker, Clients(broker.bootstrap) as clients:
            play(clients, version, print_progress)
            _run_job(f"kafka://{broker.bootstrap}/__consumer_offsets", folder, version)
        for title, query in QUERIES.items():
            print(f"\n{title}\n  {query}\n", flush=True)
            to_stdout(Snapshot.open(folder).query(query), "table")
        if tables is not None:
            print(f'\nThe tables are in {tables}: grouplake sql --tables {tables} "SELECT * FROM groups"')


def _run_job(address: str, folder: str, version: str) -> None:
    job.run(job_options(address, folder, _era(version)), print_progress, lambda: 0)


def _era(version: str) -> str:
    number = version_tuple(version)
    for first, era in (((4,), "4"), ((2, 4), "3"), ((2, 1), "2"), ((0, 11), "1"), ((0, 10, 1), "0.10")):
        if number >= first:
            return era
    return "0.9"


@contextmanager
def _folder(tables: str | None) -> Iterator[str]:
    if tables is not None:
        Path(tables).mkdir(parents=True, exist_ok=True)
        yield tables
        return
    with tempfile.TemporaryDirectory(prefix="grouplake-demo-") as folder:
        yield folder
