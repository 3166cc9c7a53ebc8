"""Which group a query commits in, and calls with invalid arguments."""

import json
import subprocess
import sys
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from patience import PATIENCE_SECONDS

import grouplake
from pipelines.group_commits.commit_rules import Place, StoredCommit
from pipelines.group_commits.offset_commits import OffsetCommits


class EmptyGroup:
    """A group that keeps what is committed."""

    def __init__(self, group_id: str, taken: dict[str, dict[Place, int]]) -> None:
        self.group_id, self._taken = group_id, taken

    def stored(self, _places: Collection[Place]) -> dict[Place, StoredCommit]:
        return {}

    def commit(self, offsets: Mapping[Place, int], _metadata: str) -> None:
        self._taken.setdefault(self.group_id, {}).update(offsets)

    def close(self) -> None:
        pass


def progress(query: str, name: str | None, offset: int) -> str:
    source = {"description": "KafkaV2[Subscribe[t]]", "endOffset": {"t": {"0": offset}}}
    return json.dumps({"id": query, "runId": "r", "name": name, "batchId": 1, "sources": [source]})


def test_each_query_of_a_session_has_its_group(caplog: pytest.LogCaptureFixture) -> None:
    taken: dict[str, dict[Place, int]] = {}
    commits = OffsetCommits("spark-{name}", None, None, lambda group_id: EmptyGroup(group_id, taken))
    for text in (progress("a", "one", 5), progress("b", "two", 6), progress("c", None, 7), progress("c", None, 8), "{"):
        commits.progressed(text)
    commits.ended("a")
    commits.ended("c")
    assert commits.stop(PATIENCE_SECONDS)
    assert taken == {"spark-one": {("t", 0): 5}, "spark-two": {("t", 0): 6}}
    assert commits.states["spark-one"].batch_id == 1
    unnamed, unreadable = (record.getMessage() for record in caplog.records)
    assert unnamed == "query c has no name, and commits no offsets: set one with queryName"
    assert unreadable.startswith("progress of a query that cannot be read: ")


def test_only_the_query_of_the_call() -> None:
    taken: dict[str, dict[Place, int]] = {}
    commits = OffsetCommits("billing", "b", None, lambda group_id: EmptyGroup(group_id, taken))
    commits.progressed(progress("a", "one", 5))
    commits.progressed(progress("b", None, 6))
    assert commits.stop(PATIENCE_SECONDS)
    assert taken == {"billing": {("t", 0): 6}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"group_id": ""}, "the group id is empty"),
        ({"kafka": {}}, "no bootstrap.servers"),
        ({"topics": "orders"}, "topics is the text 'orders'"),
        ({"kafka": {"bootstrap.servers": "a:1", "no.such": 1}}, "options of the Kafka client"),
        ({}, "put {name} into it"),
    ],
)
def test_invalid_arguments(changed: dict[str, Any], message: str) -> None:
    class Session:
        streams = None

    session: Any = Session()
    arguments: dict[str, Any] = {"group_id": "billing", "kafka": {"bootstrap.servers": "a:1"}, **changed}
    with pytest.raises(grouplake.GrouplakeError, match=message):
        grouplake.commit_offsets(session, **arguments)


@pytest.mark.parametrize(
    ("missing", "message"),
    [("pyspark", "commit_offsets needs PySpark"), ("confluent_kafka", "pip install 'grouplake[group-commits]'")],
)
def test_a_missing_package_is_named(missing: str, message: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import grouplake; " + (
        "grouplake.commit_offsets(None, group_id='g', kafka={'bootstrap.servers': 'a:1'})"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert message in ended.stderr.splitlines()[-1]
