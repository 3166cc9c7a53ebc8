"""One broker of the newest tested generation for the whole session; tests that damage a broker start their own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from coordinator_core.sources.kafka_connection import close_idle_connections
from pipelines.examples.private.kafka.broker import PrivateBroker


@pytest.fixture(scope="session")
def broker() -> Iterator[PrivateBroker]:
    with PrivateBroker("4.1.1", offsets_partitions=4) as running:
        yield running
        close_idle_connections()


@pytest.fixture
def topic() -> str:
    """A topic name that no other test uses."""
    return f"topic-{uuid4().hex[:12]}"
