"""Tables that several test files read, built once per run."""

import fcntl
import os

import pytest
from shop_pages import ShopPages, write_shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> ShopPages:
    """The pages of the shop of docs/sql.md. Tests only read it, so all workers of a run share its tables."""
    base = tmp_path_factory.getbasetemp()
    of_run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    tables = of_run / "shared-shop" / "tables"
    with (of_run / "shop.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tables.exists():
            written = write_shop(str(tmp_path_factory.mktemp("written") / "tables"))
            tables.parent.mkdir(exist_ok=True)
            os.rename(written, tables)
    return ShopPages(str(tables))
