"""Layouts of folders: tables of version 0.1.0 are read and migrated in place; some others are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from old_tables import SHARES, OldLog, old_tables
from table_contents import contents

from pipelines.cli import main
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.runtime.timestamps import at_ms
from pipelines.runtime.version import build_version
from pipelines.tables import definitions, layout, writer
from pipelines.tables.delta_writes import stamped
from pipelines.tables.layout import LAYOUT, PROPERTY, WRITTEN_BY, LayoutVersion, layout_of
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance, maintain

DATA = Path(__file__).parents[1] / "data"
_OFFSETS = "SELECT group_id, topic, partition, committed_offset FROM offsets ORDER BY 1, 2, 3"
NOW = at_ms(1_795_300_000_000)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return old_tables("0.1.0", tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> OldLog:
    return OldLog(tmp_path / "log")


def folder_layout(root: Path) -> LayoutVersion:
    return layout_of(DeltaTable(str(root / "batches")), str(root))


def set_layout(root: Path, text: str) -> None:
    properties = {PROPERTY: text, WRITTEN_BY: "7.8.9"}
    DeltaTable(str(root / "batches")).alter.set_table_properties(properties, raise_if_not_exists=False)


def test_tables_of_0_1_0_are_read_as_they_are(old: Path, log: OldLog, tmp_path: Path) -> None:
    assert folder_layout(old) == (1, 0)
    assert check(str(old)) == []
    snapshot = Snapshot.open(str(old))
    for share in SHARES:
        log.apply(tmp_path / "fresh", share)
    fresh = contents(tmp_path / "fresh")
    assert {name: contents(old)[name] for name in definitions.FROM_RECORDS} == {n: fresh[n] for n in definitions.FROM_RECORDS}
    assert Snapshot.open(str(old), 1).query("SELECT count(*) AS n FROM lag")["n"][0].as_py() > 0
    assert snapshot.query("SELECT count(*) AS n FROM batches")["n"].to_pylist() == [5]
    assert folder_layout(old) == (1, 0), "a reader changes nothing"


def test_they_are_migrated_in_place_and_continue(old: Path, log: OldLog, tmp_path: Path) -> None:
    before = Snapshot.open(str(old)).query("SELECT * FROM offset_history").num_rows
    log.apply(old)
    assert folder_layout(old) == LAYOUT
    fresh = contents(log.fresh(tmp_path / "fresh"))
    migrated = contents(old)
    names = set(definitions.FROM_RECORDS)
    assert {name: migrated[name] for name in names} == {name: fresh[name] for name in names}
    assert check(str(old)) == []
    snapshot = Snapshot.open(str(old))
    rows = snapshot.query("SELECT batch_id, written_by, phase_ms FROM batches ORDER BY batch_id").to_pylist()
    assert [row["written_by"] for row in rows[:5]] == [None] * 5
    assert [row["written_by"] for row in rows[5:]] == [build_version()] * 2
    assert dict(rows[5]["phase_ms"]).keys() == {"migrate"}
    assert snapshot.query("SELECT * FROM offset_history").num_rows > before
    assert Snapshot.open(str(old), 4).query("SELECT * FROM offset_history").num_rows == before


def test_maintenance_migrates_too(old: Path) -> None:
    before = contents(old)
    maintain(str(old), Maintenance(9_999, 168, 16), NOW, lambda _line: None)
    assert folder_layout(old) == LAYOUT
    assert contents(old) == before


@pytest.fixture
def next_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version with a further column in merged, replaced and append-only tables, and in `batches`."""
    real = definitions.table

    def table(name: str) -> definitions.TableDefinition:
        found = real(name)
        if name not in {"offsets", "groups", "members", "lag", "offset_history", "batches"}:
            return found
        schema = found.schema.append(pa.field("added", pa.list_(pa.field("element", pa.string()))))
        return replace(found, schema=schema, comments={**found.comments, "added": "Column of a later version"})

    monkeypatch.setattr(definitions, "table", table)
    monkeypatch.setattr(writer, "_as_table", lambda batch: _row_with_added(batch, table("batches").schema))
    for module in (layout, writer):
        monkeypatch.setattr(module, "LAYOUT", LayoutVersion(1, LAYOUT.additive + 1))


def _row_with_added(batch: object, schema: pa.Schema) -> pa.Table:
    row: dict[str, Any] = {name: getattr(batch, name, None) for name in schema.names}
    maps = {name: list(row[name].items()) for name in ("next_offsets", "versions", "phase_ms")}
    return pa.Table.from_pylist([{**row, **maps}], schema)


@pytest.mark.usefixtures("next_layout")
def test_added_columns_are_null_in_old_rows(old: Path) -> None:
    rows = Snapshot.open(str(old)).query(_OFFSETS)
    claimed = TablesWriter.claim(TableStore(str(old)))
    assert claimed.last is not None
    assert claimed.last.batch_id == 5
    snapshot = Snapshot.open(str(old))
    assert snapshot.query(_OFFSETS) == rows
    for name in ("offsets", "groups", "members", "lag", "offset_history", "batches"):
        assert snapshot.query(f"SELECT added FROM {name} WHERE added IS NOT NULL").num_rows == 0
    # leaves without the column are merged and ordered
    maintain(str(old), Maintenance(9_999, 168, 16), NOW, lambda _line: None)
    assert Snapshot.open(str(old)).query(_OFFSETS) == rows
    # a rollback after the migration does not bring the old columns back
    store = TableStore(str(old))
    begun = TablesWriter.claim(store)
    begun.begin()
    begun.commit("offsets", lambda table, stamp: bool(table.delete(commit_properties=stamped(stamp))))
    TablesWriter.claim(TableStore(str(old)))
    assert Snapshot.open(str(old)).query("SELECT added FROM offsets").num_rows == rows.num_rows


def test_an_interrupted_migration_is_repeated(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(old)
    with monkeypatch.context() as patch:
        patch.setattr(writer, "store_layout", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            TablesWriter.claim(TableStore(str(old)))
    assert folder_layout(old) == (1, 0)
    assert contents(old) == before
    TablesWriter.claim(TableStore(str(old)))
    assert folder_layout(old) == LAYOUT
    assert contents(old) == before


def test_a_downgrade_reads_and_is_refused_to_write(old: Path, log: OldLog, capfd: pytest.CaptureFixture[str]) -> None:
    set_layout(old, f"1.{LAYOUT.additive + 3}")
    assert check(str(old)) == []
    with pytest.raises(
        UsageError, match=rf"have layout 1\.{LAYOUT.additive + 3}, written by Grouplake 7\.8\.9; Grouplake .* can read"
    ):
        log.apply(old)
    assert main(["maintain", "--tables", str(old)]) == 2
    assert "would leave the additions empty: use the newer version" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "2.0",
            r"have layout 2\.0, written by Grouplake 7\.8\.9; .* reads layouts up to 1\.\d+: use the newer version, or restore",
        ),
        ("0.9", r"have layout 0\.9, and .* reads 1\.\d+: run `grouplake rebuild` on them"),
        ("next", r"have the unknown layout 'next'"),
    ],
)
def test_other_layouts_are_refused(old: Path, text: str, message: str) -> None:
    set_layout(old, text)
    for use in (lambda: Snapshot.open(str(old)), lambda: maintain(str(old), Maintenance(1, 1, 1), NOW, print)):
        with pytest.raises(UsageError, match=message):
            use()


def test_new_folders_have_the_layout(tmp_path: Path) -> None:
    TableStore(str(tmp_path)).create()
    assert folder_layout(tmp_path) == LAYOUT
    assert DeltaTable(str(tmp_path / "batches")).metadata().configuration[WRITTEN_BY] == build_version()


def columns() -> str:
    """Every column of every table, with its type."""
    lines = [
        f"{name}.{field.name} {field.type}{'' if field.nullable else ' not null'}"
        for name in definitions.WRITE_ORDER
        for field in definitions.table(name).schema
    ]
    return "\n".join([*lines, ""])


def test_a_change_of_columns_is_a_new_layout() -> None:
    """After a change of schemas/tables: raise LAYOUT, and keep the columns as tests/data/layout-N.M.txt.

    PYTHONPATH=tests/support:tests/pipeline python -c 'import test_layouts; print(test_layouts.columns(), end="")'
    """
    assert columns() == (DATA / f"layout-{LAYOUT}.txt").read_text(encoding="utf-8")


def test_layouts_with_the_same_first_number_only_add(old: Path) -> None:
    """Tables, nullable columns, and fields at the end of structs."""
    earlier = sorted(DATA.glob(f"layout-{LAYOUT.breaking}.*.txt"), key=lambda path: int(path.stem.rpartition(".")[2]))
    assert [path.stem for path in earlier] == [f"layout-{LAYOUT.breaking}.{n}" for n in range(1, LAYOUT.additive + 1)]
    for name in Snapshot.open(str(old)).tables:
        present = definitions.table(name).schema
        stored = pa.schema(DeltaTable(str(old / name)).schema().to_arrow())
        for field in stored:
            assert present.field(field.name).nullable == field.nullable, f"{name}.{field.name}"
        assert all(field.nullable for field in present if field.name not in stored.names), name
    for path in earlier:
        lines = columns().splitlines()
        assert [line for line in path.read_text().splitlines() if not any(extends(line, each) for each in lines)] == [], path.name


def extends(earlier: str, line: str) -> bool:
    """True for the same column, also if its struct has further fields."""
    head, closing, rest = earlier.rpartition(">>")
    return line == earlier or (bool(closing) and line.startswith(f"{head}, ") and line.endswith(closing + rest))


def test_fields_of_structs_are_added_in_place(old: Path) -> None:
    """Findings of an earlier layout have no start and no owner; the next sample writes both."""
    before = Snapshot.open(str(old)).query("SELECT group_id, findings FROM group_status ORDER BY group_id").to_pylist()
    assert any(row["findings"] for row in before)
    TablesWriter.claim(TableStore(str(old)))
    after = Snapshot.open(str(old)).query("SELECT group_id, findings FROM group_status ORDER BY group_id").to_pylist()
    for row, migrated in zip(before, after, strict=True):
        for finding, same in zip(row["findings"], migrated["findings"], strict=True):
            assert finding.items() <= same.items()
            assert {same[name] for name in same.keys() - finding.keys()} == {None}
    assert Snapshot.open(str(old)).query("SELECT findings[1]['client_id'] AS who FROM group_status").num_rows == len(after)
