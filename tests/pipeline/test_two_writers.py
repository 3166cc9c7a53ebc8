"""Two writers of the same tables, in every order of their steps: one continues, the other fails, the tables are consistent."""

import itertools
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from created_tables import created_tables
from deltalake import DeltaTable, write_deltalake
from interleaving import Actor, gates
from log_builder import Log, member
from table_contents import contents
from table_logs import change_table

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.query.check import check
from pipelines.runtime.errors import AnotherWriter, TablesError
from pipelines.tables import definitions
from pipelines.tables.store import TableStore, query
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.bulk_writer import BulkWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.executor_tasks import WrittenFiles
from pipelines.tables.writers.table_write import TableWrite

pytestmark = pytest.mark.long

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ERA = Era.named("4")

#: Where the log is cut into batches; the first is applied before the two writers start.
CUTS = (3, 8, 13)


def whole_log() -> Log:
    log = Log(partition=3)
    log.commit(0, 1, group="a")
    log.commit(1, 2, group="a", producer=7)
    log.group([member()], group="b")
    log.commit(0, 5, group="a")
    log.marker(7)
    log.group([], group="b")
    log.commit(0, 9, group="c")
    log.raw(b"\x00\x63", b"")
    log.commit(0, 7, group="a")
    log.group_tombstone("b")
    log.commit(1, 8, group="d", producer=9)
    log.group([member("m2")], group="e")
    log.offset_tombstone(0, group="c")
    assert log.end == CUTS[-1]
    return log


LOG = whole_log()
RANGES = [change_table(LOG, ERA, start, end) for start, end in itertools.pairwise((0, *CUTS))]


def applier(root: Path) -> BatchApplier:
    return BatchApplier(TableStore(str(root)), ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000)


Copies = Callable[[], Path]


@pytest.fixture(scope="module")
def first_batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("first") / "tables"
    created_tables(root)
    applier(root).apply_rows(RANGES[0])
    return root


@pytest.fixture
def prepared(first_batch: Path, tmp_path: Path) -> Copies:
    """Make folders of tables that have the first batch."""
    numbers = itertools.count()
    return lambda: Path(shutil.copytree(first_batch, tmp_path / str(next(numbers))))


def actor(root: Path, name: str) -> Actor:
    writing = applier(root)

    def work() -> None:
        for rows in RANGES[1:]:
            writing.apply_rows(rows)

    return Actor(name, work)


@pytest.fixture(scope="module")
def undisturbed(first_batch: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[str]]]:
    """Contents after every batch."""
    root = Path(shutil.copytree(first_batch, tmp_path_factory.mktemp("undisturbed") / "tables"))
    found = [contents(root)]
    writing = applier(root)
    for rows in RANGES[1:]:
        writing.apply_rows(rows)
        found.append(contents(root))
    return found


class Steps(NamedTuple):
    """Gates that one writer passes, then the other, and so on; finally both run to the end, the first one first."""

    turns: tuple[int, ...]


def play(root: Path, steps: Steps) -> tuple[Actor, Actor]:
    first, second = actor(root, "first"), actor(root, "second")
    for who, count in zip(itertools.cycle((first, second)), steps.turns, strict=False):
        who.advance(count)
    first.advance()
    second.advance()
    return first, second


def assert_one_went_on(root: Path, actors: Sequence[Actor], last: dict[str, list[str]]) -> None:
    fenced = [one for one in actors if one.outcome is not None]
    assert len(fenced) <= 1
    for one in fenced:
        assert isinstance(one.outcome, AnotherWriter), one.outcome
        assert f"another job took over the tables under {root} (writer epoch " in str(one.outcome)
    assert contents(root) == last
    assert check(str(root)) == []


def gates_of_an_undisturbed_writer(root: Path) -> list[str]:
    one = actor(root, "alone")
    one.advance()
    assert one.outcome is None
    return one.gates


@pytest.mark.long
def test_a_writer_claims_the_tables_at_any_step_of_another_one(prepared: Copies, undisturbed: list[dict[str, list[str]]]) -> None:
    with gates():
        names = gates_of_an_undisturbed_writer(prepared())
        steps = names.index("after:batches") + 1
        for step in range(steps + 1):
            root = prepared()
            first, second = actor(root, "first"), actor(root, "second")
            first.advance(step)
            second.advance()
            first.advance()
            assert second.outcome is None
            # a writer that has not claimed the tables yet finds all done; one that has is fenced
            assert (first.outcome is None) is (step <= names.index("claiming"))
            assert_one_went_on(root, (first, second), undisturbed[-1])


def some_steps(count: int, longest: int) -> list[Steps]:
    draw = random.Random(20_261_121)
    return [Steps(tuple(draw.randint(0, longest) for _ in range(draw.randint(2, 5)))) for _ in range(count)]


@pytest.mark.parametrize("steps", some_steps(6, 24), ids=str)
def test_writers_take_turns(steps: Steps, prepared: Copies, undisturbed: list[dict[str, list[str]]]) -> None:
    with gates():
        root = prepared()
        assert_one_went_on(root, play(root, steps), undisturbed[-1])


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_writers_take_turns_at_every_pair_of_steps(prepared: Copies, undisturbed: list[dict[str, list[str]]]) -> None:
    with gates():
        count = len(gates_of_an_undisturbed_writer(prepared()))
        for turns in itertools.product(range(count + 1), repeat=2):
            root = prepared()
            assert_one_went_on(root, play(root, Steps(turns)), undisturbed[-1])


def test_every_claim_is_the_next_generation(prepared: Copies) -> None:
    root = prepared()
    store = TableStore(str(root))
    first = store.last_batch()
    assert first is not None
    assert first.generation == 1
    assert [TablesWriter.claim(TableStore(str(root))).generation for _ in range(3)] == [2, 3, 4]


def test_a_claim_opens_only_what_it_has_to_look_into(prepared: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    root = prepared()
    rows = contents(root)
    store = TableStore(str(root))
    TablesWriter.claim(store)
    assert set(store._open) == {"batches"}
    DeltaTable(str(root / "offsets")).delete("partition = 0")
    store = TableStore(str(root))
    TablesWriter.claim(store)
    assert set(store._open) == {"batches", "offsets"}
    assert DeltaTable(str(root / "offsets")).to_pyarrow_table().num_rows > 0
    assert contents(root) == rows
    # an earlier version may have named a version that it could not write
    monkeypatch.setattr("pipelines.tables.writer.build_version", lambda: "another")
    store = TableStore(str(root))
    TablesWriter.claim(store)
    assert set(store._open) == set(definitions.WRITE_ORDER)


def test_a_batch_that_failed_is_taken_back_by_the_same_writer(prepared: Copies, undisturbed: list[dict[str, list[str]]]) -> None:
    root = prepared()
    writing = applier(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TablesWriter, "finish", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            writing.apply_rows(RANGES[1])
    for rows in RANGES[1:]:
        writing.apply_rows(rows)
    assert contents(root) == undisturbed[-1]
    assert writing.writer is not None
    assert writing.writer.generation == 2


def history_row(group: str) -> pa.Table:
    columns = {"group_id": group, "change": "rebalance", "log_partition": 0, "log_offset": 0, "batch_id": 1}
    return pa.Table.from_pylist([columns], definitions.table("group_history").schema)


def test_a_late_write_is_taken_back_and_the_write_repeated(prepared: Copies) -> None:
    root = prepared()
    writer = TablesWriter.claim(TableStore(str(root)))
    writer.begin()
    version = writer.version("group_history")
    write_deltalake(str(root / "group_history"), history_row("of another job"), mode="append")
    assert DeltaRsWriter(writer).write(TableWrite("group_history", history_row("ours"))) == version + 3
    assert added(root) == ["ours"]
    operations = [entry["operation"] for entry in DeltaTable(str(root / "group_history")).history(3)]
    assert operations == ["WRITE", "RESTORE", "WRITE"]


@pytest.mark.spark
def test_files_of_executors_are_not_committed_after_another_job(
    prepared: Copies, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    root = prepared()
    writer = TablesWriter.claim(TableStore(str(root)))
    writer.begin()
    version = writer.version("group_history")
    real_append = BulkWriter._appended
    late = iter([history_row("of another job")])

    def append(self: BulkWriter, *arguments: Any, **options: Any) -> WrittenFiles:
        for rows in late:
            write_deltalake(str(root / "group_history"), rows, mode="append")
        return real_append(self, *arguments, **options)

    monkeypatch.setattr(BulkWriter, "_appended", append)
    ours = spark.createDataFrame(history_row("ours"))
    # theirs, taken back, ours
    assert BulkWriter(writer, spark).write(TableWrite("group_history", ours)) == version + 3
    assert added(root) == ["ours"]
    assert DeltaTable(str(root / "group_history")).history(1)[0]["userMetadata"] == "grouplake generation 2, batch 1, attempt 2"


def added(root: Path) -> list[str]:
    """Groups in the newest version of the history that the first batch does not know."""
    found = query({"h": DeltaTable(str(root / "group_history"))}, "SELECT group_id FROM h WHERE batch_id = 1")
    groups: list[str] = found["group_id"].to_pylist()
    return groups


def test_a_table_that_was_replaced_alone_is_reported(prepared: Copies) -> None:
    root = prepared()
    applier(root).apply_rows(RANGES[1])
    shutil.rmtree(root / "offsets")
    TableStore(str(root)).create()
    with pytest.raises(TablesError, match=r"offsets under .* ends at version 0, before version 2 that the last batch names"):
        applier(root).apply_rows(RANGES[2])
