"""Each case runs as the Scala coordinator and as the Java one."""

import pytest
from coordinator_harness import Harness


@pytest.fixture(params=["3", "4"])
def at(request: pytest.FixtureRequest) -> Harness:
    return Harness(request.param)
