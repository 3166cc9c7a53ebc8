"""The connection option `isolation_level`."""

import pytest

from coordinator_core.log.errors import LogMisconfigured
from coordinator_core.sources.kafka_options import reads_committed


def test_levels() -> None:
    assert [reads_committed(options) for options in ({}, {"isolation_level": "read_uncommitted"})] == [False, False]
    assert reads_committed({"isolation_level": "read_committed"})
    with pytest.raises(LogMisconfigured, match="isolation_level 'serializable': expected read_uncommitted or read_committed"):
        reads_committed({"isolation_level": "serializable"})
