"""Tables that several test files read, built once per run."""

import shutil
from pathlib import Path

import pytest
from shop_day import day_tables
from shop_pages import ShopPages
from table_contents import contents
from three_batches import RANGES, applier, write_two_batches


@pytest.fixture(scope="session")
def shop() -> ShopPages:
    """The pages of the shop of docs/sql.md. Tests only read it."""
    return ShopPages(day_tables())


@pytest.fixture(scope="session")
def two_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of `three_batches.py` before the last batch. Tests change copies."""
    root = tmp_path_factory.mktemp("two") / "tables"
    write_two_batches(root)
    return root


@pytest.fixture(scope="session")
def undisturbed(two_batches: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The contents of these tables after the last batch, without commits of other programs."""
    root = Path(shutil.copytree(two_batches, tmp_path_factory.mktemp("undisturbed") / "tables"))
    applier(root).apply_rows(RANGES[2])
    return contents(root)
