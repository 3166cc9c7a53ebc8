"""Tables that change their source from the log of a live broker to polls and back: the broker's state, and true histories."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from eventually import equal_to, eventually
from following import Job
from group_offsets import commit_offsets
from jobs import run_job
from live_lag import LiveLag
from patience import PATIENCE_SECONDS
from poll_comparison import difference, known_to_both, now_ms, polled, rows
from real_runs import RealRun, real_run

from coordinator_core.sources.kafka import KafkaSource
from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.job.stored_position import known_epochs
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.upkeep.rebuild.rebuild import FROM_LOG

pytestmark = [pytest.mark.broker, pytest.mark.long]

PARTITIONS = 3
COMPARED = ("offsets", "groups", "members", "assignments")
HISTORIES = ("offset_history", "group_history", "membership_history", "ownership_history")
REBALANCES = "SELECT group_id, from_generation, to_generation FROM rebalances ORDER BY 1, 2, 3"
SETTINGS: dict[str, Any] = {"clock_ms": now_ms, "lag_interval_seconds": 0}


class ChangingTables:
    """A folder whose source changes, beside one that is read from the log alone, and the groups that both have."""

    def __init__(self, broker: PrivateBroker, clients: Clients, topic: str, folder: Path) -> None:
        self.bootstrap, self.clients, self.topic = broker.bootstrap, clients, topic
        self.classic, self.modern, self.simple, self.gone = (
            f"{topic}-{kind}" for kind in ("classic", "modern", "simple", "gone")
        )
        self.groups = {self.classic: "classic", self.modern: "consumer", self.simple: "simple", self.gone: "simple"}
        clients.create_topics([topic], PARTITIONS)
        self.members = [clients.consumer(self.classic, [topic]) for _ in range(2)]
        self.members.append(clients.consumer(self.modern, [topic], group_protocol="consumer"))
        clients.settle(self.members[:2], PARTITIONS)
        clients.settle(self.members[2:], PARTITIONS)
        clients.commit_everywhere(self.members, 0)
        for group in (self.simple, self.gone):
            commit_offsets(self.bootstrap, group, {(topic, 0): 3, (topic, 1): 7})
        with KafkaSource(f"kafka://{self.bootstrap}/{topic}") as source:
            names = {topic_id: (name, "cluster") for topic_id, name in source.topic_ids().items()}
        self.log = LiveLag(self.bootstrap, folder / "log", names=lambda: names)
        self.root = folder / "tables"
        self._first = LiveLag(self.bootstrap, self.root, names=lambda: names)

    def read_first(self) -> None:
        """Read the log into both folders at a quiet moment: members own what they are to own."""
        eventually("members own their targets", self._is_settled)
        self._first.sample()

    def read_log(self, **changed: Any) -> list[str]:
        """A run that reads the log up to its end."""
        return run_job(
            f"kafka://{self.bootstrap}/__consumer_offsets", self.root, **{"driver_records": 10_000, **SETTINGS, **changed}
        )

    def poll(self, **changed: Any) -> list[str]:
        """A run that polls once."""
        return polled(self.bootstrap, self.root, **{**SETTINGS, **changed})

    def commit(self, offset: int) -> None:
        """A commit of the simple group."""
        commit_offsets(self.bootstrap, self.simple, {(self.topic, 0): offset})

    def delete_a_group(self) -> None:
        """Delete a group, with its offsets."""
        self.clients.admin.delete_consumer_groups([self.gone])[self.gone].result(PATIENCE_SECONDS)

    def differences_from_polls(self) -> dict[str, list[str]]:
        """Rows that the tables do not have as those of the log, but for columns that a poll cannot know."""
        self._keep_members()
        self.log.sample()
        return {
            table: one_sided
            for table in COMPARED
            if (one_sided := difference(*(known_to_both(root, table, self.groups) for root in (self.log.root, self.root))))
        }

    def differences(self) -> dict[str, list[str]]:
        """Rows of state that the tables do not have exactly as those of the log."""
        self._keep_members()
        self.log.sample()
        return {table: found for table in FROM_LOG if (found := difference(*(self._rows(root, table) for root in self._roots)))}

    @property
    def _roots(self) -> tuple[str, Path]:
        return self.log.root, self.root

    def last_batch(self) -> int:
        """The id of the last batch."""
        return Snapshot.open(str(self.root)).batch.batch_id

    def history(self, table: str, columns: str, after: int) -> list[tuple[Any, ...]]:
        """Rows of a history after a batch."""
        names = ", ".join(f"'{name}'" for name in self.groups)
        condition = f"batch_id > {after} AND group_id IN ({names})"
        found = rows(self.root, f"SELECT batch_id, {columns} FROM {table} WHERE {condition} ORDER BY 1, 2, 3, 4")
        return [tuple(row.values())[1:] for row in found]

    def _rows(self, root: str | Path, table: str) -> list[str]:
        found = rows(root, f"SELECT * FROM {table}")
        # the position of a simple group is that of a commit in the batch that created it
        hidden = {"batch_id": None} if table != "groups" else {"batch_id": None, "log_offset": None}
        return sorted(str({**row, **hidden}) for row in found if row["group_id"] in self.groups)

    def _is_settled(self) -> bool:
        self._keep_members()
        self.log.sample()
        owned = rows(self.log.root, f"SELECT state FROM groups WHERE group_id IN ('{self.classic}', '{self.modern}')")
        return [row["state"] for row in owned] == ["Stable", "Stable"]

    def _keep_members(self) -> None:
        """Members of librdkafka that are not polled leave their groups."""
        for member in self.members:
            member.poll(0)


@pytest.fixture
def tables(broker: PrivateBroker, topic: str, tmp_path: Path) -> Iterator[ChangingTables]:
    with Clients(broker.bootstrap) as clients:
        yield ChangingTables(broker, clients, topic, tmp_path)


def expect_whole(root: Path) -> None:
    assert main(["check", "--tables", str(root)]) == 0


def test_tables_of_a_log_continue_with_polls_and_return_to_the_log(tables: ChangingTables) -> None:
    tables.read_first()
    with pytest.raises(UsageError, match="--source-change for the same cluster"):
        tables.poll()
    before, rebalances = tables.last_batch(), rows(tables.root, REBALANCES)
    tables.commit(5)
    tables.delete_a_group()
    assert [line for line in tables.poll(source_change=True) if "the source is kafka-groups://" in line]
    assert tables.differences_from_polls() == {}
    offset_columns = "group_id, partition, change, previous_offset, committed_offset, commits"
    assert tables.history("offset_history", offset_columns, before) == [
        (tables.gone, 0, "tombstone", 3, None, 0),
        (tables.gone, 1, "tombstone", 7, None, 0),
        (tables.simple, 0, "commit", 3, 5, 1),
    ]
    changed = [(name, "source_changed", "log → polls") for name in sorted(tables.groups) if name != tables.gone]
    assert tables.history("group_history", "group_id, change, detail", before) == changed
    assert tables.history("membership_history", "group_id, state, generation", before) == []
    assert tables.history("ownership_history", "group_id, gained, lost", before) == []
    # the option has no effect on tables of the same source
    tables.commit(6)
    tables.poll(source_change=True)
    assert tables.history("offset_history", offset_columns, before)[-1] == (tables.simple, 0, "commit", 5, 6, 1)
    expect_whole(tables.root)

    polls = tables.last_batch()
    tables.commit(4)
    assert [line for line in tables.read_log(source_change=True) if "the source is kafka://" in line]
    assert tables.differences() == {}
    assert tables.history("offset_history", offset_columns, polls) == [(tables.simple, 0, "rewind", 6, 4, 1)]
    changed = [(name, kind, "polls → log") for name, kind, _ in changed]
    assert tables.history("group_history", "group_id, change, detail", polls) == changed
    assert rows(tables.root, REBALANCES) == rebalances
    tables.commit(9)
    tables.read_log()
    assert tables.differences() == {}
    assert tables.history("offset_history", offset_columns, polls)[-1] == (tables.simple, 0, "commit", 4, 9, 1)
    expect_whole(tables.root)
    # offsets of polls are above those of the earlier phase
    tables.poll(source_change=True)
    assert tables.differences_from_polls() == {}
    expect_whole(tables.root)


#: Steps of a change, in their order; the last one is before its row of `batches`. The tables of the new state have rows before.
POINTS = (
    "claimed",
    "before:batches",
    "after:batches",
    "source_change:read",
    "position:written",
    *(f"source_change:{name}" for name in (*FROM_LOG, "transactions", "topic_ids", *HISTORIES)),
)


@pytest.mark.parametrize(
    "points",
    [POINTS[-1:], pytest.param(POINTS, marks=[pytest.mark.slow, pytest.mark.timeout(2_400)])],
    ids=["last step", "every step of the change"],
)
def test_a_change_that_is_killed_has_changed_nothing(points: tuple[str, ...], tables: ChangingTables, tmp_path: Path) -> None:
    """Killed at each step in turn, to polls and back; then the old source goes on, and the next change is complete."""
    tables.read_first()
    tables.commit(19)
    tables.read_log()
    epochs = kept_epochs(tables.root)
    assert epochs
    sources = (f"kafka-groups://{tables.bootstrap}", f"kafka://{tables.bootstrap}/__consumer_offsets")
    for number, source in enumerate(sources):
        tables.commit(20 + 2 * number)
        before, was = tables.last_batch(), state_of(tables.root)
        for point in points:
            with changing_run(source, tables.root, tmp_path, point) as run:
                assert run.wait() == -signal.SIGKILL, (point, run.output)
            assert (tables.last_batch(), state_of(tables.root)) == (before, was), point
            expect_whole(tables.root)
        # those of the log, by which the next run notices a truncated log
        assert kept_epochs(tables.root) == (epochs if number == 0 else {})
        old, new = (tables.read_log, tables.poll) if number == 0 else (tables.poll, tables.read_log)
        old()
        tables.commit(21 + 2 * number)
        new(source_change=True)
        assert (tables.differences_from_polls() if number == 0 else tables.differences()) == {}
        history = tables.history("offset_history", "partition, change, committed_offset", before)
        assert history == [(0, "commit", 20 + 2 * number), (0, "commit", 21 + 2 * number)]
        expect_whole(tables.root)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_a_run_that_is_killed_after_the_change_has_made_it(tables: ChangingTables, tmp_path: Path) -> None:
    """Killed after the row of its batch: the next run continues with the new source, and changes nothing a second time."""
    tables.read_first()
    sources = (f"kafka-groups://{tables.bootstrap}", f"kafka://{tables.bootstrap}/__consumer_offsets")
    for number, source in enumerate(sources):
        tables.commit(30 + number)
        before = tables.last_batch()
        with changing_run(source, tables.root, tmp_path, "source_change:done") as run:
            assert run.wait() == -signal.SIGKILL, run.output
        assert tables.last_batch() == before + 1
        expect_whole(tables.root)
        tables.poll(source_change=True) if number == 0 else tables.read_log(source_change=True)
        assert (tables.differences_from_polls() if number == 0 else tables.differences()) == {}
        detail = "log → polls" if number == 0 else "polls → log"
        assert tables.history("group_history", "group_id, change, detail", before) == [
            (name, "source_changed", detail) for name in sorted(tables.groups)
        ]
        assert tables.history("offset_history", "partition, change, committed_offset", before) == [(0, "commit", 30 + number)]


def kept_epochs(root: Path) -> dict[int, int]:
    """Leader epochs that are known for the position of the tables."""
    return dict(known_epochs(root, Snapshot.open(str(root)).batch.next_offsets))


def changing_run(source: str, root: Path, folder: Path, fault: str) -> AbstractContextManager[RealRun]:
    """A run that changes the source, until a step."""
    arguments = ["run", "--source", source, "--tables", str(root), "--source-change"]
    return real_run(arguments, folder / "output", fault=fault)


def state_of(root: Path) -> dict[str, int]:
    """Rows of each table as a reader finds them."""
    snapshot = Snapshot.open(str(root))
    names = [name for name in definitions.WRITE_ORDER if name in snapshot.batch.versions]
    return {name: snapshot.query(f"SELECT count(*) AS n FROM {name}")["n"][0].as_py() for name in names}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_continues_at_the_position_of_the_change(tables: ChangingTables) -> None:
    """Also with the checkpoint of a stream from before the change, twice."""
    tables.read_first()
    for number in range(2):
        for offset in (41 + 10 * number, 42 + 10 * number):
            tables.commit(offset)
            lines = tables.read_log(driver_records=0)
            assert "starting Spark" in lines
            assert "stopping" not in lines
            assert tables.differences() == {}, lines
        assert (tables.root / "_checkpoint" / "offsets").exists()
        tables.poll(source_change=True)
        tables.commit(43 + 10 * number)
        tables.read_log(source_change=True)
        assert not (tables.root / "_checkpoint").exists()
    tables.commit(61)
    tables.read_log(driver_records=0)
    assert tables.differences() == {}
    expect_whole(tables.root)


@pytest.mark.slow
def test_a_job_follows_the_log_after_the_change(tables: ChangingTables) -> None:
    """With Spark, whose stream begins at the position of the change."""
    tables.read_first()
    tables.poll(source_change=True)
    tables.commit(30)
    source = f"kafka://{tables.bootstrap}/__consumer_offsets"
    committed = f"SELECT committed_offset FROM offsets WHERE group_id = '{tables.simple}' AND partition = 0"
    for offset in (31, 32):
        with Job(source, tables.root, "--source-change") as job:
            job.wait_until_logged("ready: following")
            tables.commit(offset)
            wanted = equal_to([{"committed_offset": offset}])
            eventually("the job has the commit", lambda: rows(tables.root, committed), wanted, unless=job.failure)
            job.signal(signal.SIGTERM)
            assert (job.ended(), job.tracebacks) == (0, [])
    expect_whole(tables.root)
