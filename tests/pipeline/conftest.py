"""Tables that several test files read, built once per run."""

import pytest
from shop_pages import ShopPages, write_shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> ShopPages:
    """The pages of the shop of docs/sql.md. Tests only read it."""
    return ShopPages(write_shop(str(tmp_path_factory.mktemp("shop") / "tables")))
