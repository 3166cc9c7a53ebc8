"""Tables that several test files read, built once per run."""

import pytest
from page_server import PageServer, write_shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> PageServer:
    """The pages of the shop of docs/sql.md. Tests only read it."""
    return PageServer(write_shop(str(tmp_path_factory.mktemp("shop") / "tables")))
