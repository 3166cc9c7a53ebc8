"""A damaged or missing file of a table ends every command with one line that names the file and what to do."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from old_tables import OldLog

from pipelines.cli import main

Captured = pytest.CaptureFixture[str]

REMEDY = (
    "; stop the job, then restore a backup (`grouplake restore`), or load the state from the log "
    "(`grouplake rebuild --source ADDRESS`)"
)
RULES = '[[rules]]\nname = "Lag"\non = "lag"\nabove = 1\n'


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> OldLog:
    return OldLog(tmp_path_factory.mktemp("log"))


@pytest.fixture(scope="module")
def sound(log: OldLog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of one half of the log."""
    root = tmp_path_factory.mktemp("sound") / "tables"
    log.apply(root, 0.5)
    return root


@pytest.fixture
def tables(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "tables"))


def data_file(tables: Path, name: str) -> Path:
    return tables / name / DeltaTable(str(tables / name)).file_uris()[0].rpartition("/")[2]


def cut(tables: Path, name: str) -> None:
    file = data_file(tables, name)
    file.write_bytes(file.read_bytes()[:-100])


def remove(tables: Path, name: str) -> None:
    data_file(tables, name).unlink()


def cut_log(tables: Path, name: str) -> None:
    newest = max((tables / name / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:150])


def remove_checkpoint(tables: Path, name: str) -> None:
    """As after an incomplete copy: the log begins at a checkpoint, which is lost."""
    folder = tables / name / "_delta_log"
    DeltaTable(str(tables / name)).create_checkpoint()
    for file in (*folder.glob("*.checkpoint.parquet"), *folder.glob("*.json")):
        file.unlink()


Damage = Callable[[Path, str], None]
DAMAGES: dict[Damage, str] = {
    cut: r"offsets/part-",
    remove: r"offsets/part-",
    cut_log: "cannot open table offsets under ",
    remove_checkpoint: "cannot open table offsets under ",
}


def commands(tables: Path, log: OldLog) -> dict[str, list[str]]:
    rules = tables.parent / "rules.toml"
    rules.write_text(RULES)
    return {
        "sql": ["--tables", str(tables), "SELECT * FROM offsets"],
        "lag": ["--tables", str(tables), "--all-groups"],
        "check": ["--tables", str(tables)],
        "backup": ["--tables", str(tables), "--to", str(tables.parent / "backups")],
        "rebuild": ["--tables", str(tables)],
        "run": ["--tables", str(tables), "--source", log.address],
    }


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["sql", "lag", "check", "backup", "rebuild", "run"])
def test_one_line_with_the_file_and_the_remedy(name: str, damage: Damage, tables: Path, log: OldLog, capfd: Captured) -> None:
    damage(tables, "offsets")
    assert main([name, *commands(tables, log)[name]]) == 1
    *progress, line = capfd.readouterr().err.splitlines()
    assert [each for each in progress if each.startswith(("grouplake: ", "Traceback"))] == []
    assert line.startswith("grouplake: ")
    assert DAMAGES[damage] in line
    assert line.endswith(REMEDY)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_the_table_of_batches(damage: Damage, tables: Path, log: OldLog, capfd: Captured) -> None:
    damage(tables, "batches")
    for name, arguments in commands(tables, log).items():
        assert main([name, *arguments]) == 1
        *_, line = capfd.readouterr().err.splitlines()
        assert line.startswith("grouplake: ")
        assert "batches" in line
        assert line.endswith(REMEDY), name


def test_a_state_that_maintenance_removed_is_no_damage(tables: Path, log: OldLog, capfd: Captured) -> None:
    file = data_file(tables, "offsets")
    log.apply(tables, 1.0)
    file.unlink()
    assert main(["sql", "--tables", str(tables), "SELECT * FROM offsets"]) == 0
    assert main(["sql", "--tables", str(tables), "--as-of", "0", "SELECT * FROM offsets"]) == 2
    assert "batch 0 can no longer be read: `grouplake maintain` has removed" in capfd.readouterr().err
