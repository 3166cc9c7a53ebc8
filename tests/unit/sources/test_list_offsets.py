"""ListOffsets requests in the faster encoding equal those of the library, in every version."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from kafka.protocol.consumer import ListOffsetsRequest

from coordinator_core.sources.kafka_topic import Leader
from coordinator_core.sources.list_offsets import ListOffsets

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TOPICS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=200),
    st.dictionaries(st.integers(0, 2**31 - 1), st.builds(Leader, st.just(1), INT32), max_size=5),
    max_size=4,
)


def as_the_library_encodes(request: ListOffsets, version: int) -> bytes:
    message = ListOffsetsRequest(replica_id=-1, isolation_level=request.isolation_level, topics=request.topics)
    message.API_VERSION = version
    message.with_header(7, "grouplake")
    data: bytes = message.encode(header=True, framed=True)
    return data


@pytest.mark.parametrize("version", range(1, 10))
@settings(max_examples=25)
@given(topics=TOPICS, data=st.data())
def test_the_encoding_is_that_of_the_library(version: int, topics: dict[str, dict[int, Leader]], data: st.DataObject) -> None:
    which = data.draw(st.sampled_from([-1, -2]) | st.just({(t, p): data.draw(INT64) for t, each in topics.items() for p in each}))
    request = ListOffsets(topics, which, data.draw(st.sampled_from([0, 1])))
    request.API_VERSION = version
    request.with_header(7, "grouplake")
    assert request.encode(header=True, framed=True) == as_the_library_encodes(request, version)
    assert request.encode(version=version) == request.encode(header=True, framed=True)[-len(request.encode()) :]
