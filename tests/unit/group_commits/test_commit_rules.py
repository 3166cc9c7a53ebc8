"""Progress of a query → offsets, and the table of decisions about them."""

import json

import pytest

from pipelines.group_commits.commit_rules import (
    CommitDecision,
    StoredCommit,
    commit_metadata,
    committing_query,
    decide,
    plan_commits,
)
from pipelines.group_commits.finished_batch import FinishedBatch, finished_batch

ORDERS = "KafkaV2[Subscribe[orders]]"
A, B = "query-a", "query-b"


def progress(*sources: tuple[str, object], batch: int = 7, name: str | None = "shop") -> str:
    described = [{"description": text, "startOffset": None, "endOffset": end} for text, end in sources]
    return json.dumps({"id": A, "runId": "run", "name": name, "batchId": batch, "sources": described})


def batch_of(offsets: dict[tuple[str, int], int], query: str = A) -> FinishedBatch:
    return FinishedBatch(query, "run", "shop", 7, offsets)


def made_by(query: str, offset: int) -> StoredCommit:
    return StoredCommit(offset, commit_metadata(batch_of({}, query)))


def test_end_offsets_of_kafka_sources() -> None:
    read = finished_batch(progress((ORDERS, {"orders": {"0": 23, "1": 0}}), ("RateStreamV2[]", 5), ("files", {"logOffset": 1})))
    assert read == batch_of({("orders", 0): 23, ("orders", 1): 0})


def test_the_least_offset_of_several_sources_counts() -> None:
    other = ("KafkaV2[Assign[x]]", {"orders": {"0": 9}, "bills": {"2": 4}})
    read = finished_batch(progress((ORDERS, {"orders": {"0": 23}}), other))
    assert read is not None
    assert read.offsets == {("orders", 0): 9, ("bills", 2): 4}


def test_only_the_named_topics() -> None:
    text = progress((ORDERS, {"orders": {"0": 1}, "bills": {"0": 2}}))
    assert finished_batch(text, ["bills"]) == batch_of({("bills", 0): 2})
    assert finished_batch(text, []) is None


@pytest.mark.parametrize("end", [None, {}, {"orders": {}}, {"orders": {"0": -1}}])
def test_a_source_without_offsets(end: object) -> None:
    assert finished_batch(progress((ORDERS, end))) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", progress((ORDERS, [1])), progress((ORDERS, {"orders": {"x": 1}}))])
def test_what_is_no_progress(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        finished_batch(text)


@pytest.mark.parametrize(
    ("stored", "committed_before", "renew", "decision"),
    [
        (None, False, False, CommitDecision.COMMIT),
        (None, True, False, CommitDecision.COMMIT),  # the commit has expired, or was deleted
        (made_by(A, 9), True, False, CommitDecision.COMMIT),
        (made_by(A, 10), True, False, CommitDecision.SKIP),
        (made_by(A, 10), True, True, CommitDecision.COMMIT),
        (made_by(A, 11), False, False, CommitDecision.BEHIND),
        (made_by(A, 11), True, True, CommitDecision.BEHIND),
        (made_by(B, 9), False, False, CommitDecision.COMMIT),  # a new checkpoint of the same job
        (made_by(B, 11), False, False, CommitDecision.BEHIND),
        (made_by(B, 9), True, False, CommitDecision.OTHER_QUERY),
        (StoredCommit(9), False, False, CommitDecision.FOREIGN),
        (StoredCommit(10, "checkpoint of Flink"), True, True, CommitDecision.FOREIGN),
    ],
)
def test_decisions(stored: StoredCommit | None, committed_before: bool, renew: bool, decision: CommitDecision) -> None:
    assert decide(stored, 10, A, committed_before, renew) is decision


@pytest.mark.parametrize(
    "metadata",
    ["", "{", "[]", "null", '{"query": "a"}', '{"grouplake": 2, "query": "a"}', '{"grouplake": 1, "query": 3}', "[" * 4_000],
)
def test_metadata_of_other_programs(metadata: str) -> None:
    assert committing_query(metadata) is None
    assert committing_query('{"grouplake": 1, "query": "a"}' + " " * 4_096) is None


def test_a_partition_that_is_new_is_committed_beside_the_others() -> None:
    stored = {("orders", 0): made_by(A, 5), ("orders", 1): made_by(A, 8)}
    plan = plan_commits(batch_of({("orders", 0): 5, ("orders", 1): 6, ("orders", 2): 0}), stored, [])
    assert (plan.commits, plan.behind, plan.refusal) == ({("orders", 2): 0}, {("orders", 1): 6}, "")


def test_one_foreign_commit_refuses_the_batch() -> None:
    plan = plan_commits(batch_of({("orders", 0): 5, ("orders", 1): 6}), {("orders", 1): StoredCommit(3)}, [])
    assert not plan.commits
    assert plan.refusal == "the group has a commit of another program (offset 3 of orders-1)"
