"""What is committed for a finished batch, beside what the group has: one decision per partition.

| the group has                                        | decision |
|------------------------------------------------------|----------|
| no commit                                            | commit   |
| a commit of another program                          | refuse   |
| one of another query, after a commit of this run     | refuse   |
| a smaller offset                                     | commit   |
| the same offset                                      | skip; commit, if commits are renewed |
| a greater offset                                     | behind: a restarted query never commits back |

A refusal is about the whole group.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from pipelines.group_commits.finished_batch import FinishedBatch

Place = tuple[str, int]

#: Brokers refuse longer metadata by default (`offset.metadata.max.bytes`).
_METADATA_LIMIT = 4_096
#: Key of the metadata by which a commit of this package is recognized, with the version of the form.
_MARK, _FORM = "grouplake", 1


class CommitDecision(Enum):
    """What happens with the offset of one partition."""

    COMMIT = "commit"
    SKIP = "skip"
    BEHIND = "behind"
    FOREIGN = "foreign"
    OTHER_QUERY = "other query"


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A commit that the group has."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The commits of a batch. `refusal` is a line if the group must not be written, "" otherwise; `behind` are not committed."""

    commits: Mapping[Place, int]
    behind: Mapping[Place, int]
    refusal: str = ""


def commit_metadata(batch: FinishedBatch) -> str:
    """The metadata of commits of a batch: which query, run and batch made them."""
    return json.dumps({_MARK: _FORM, "query": batch.query_id, "run": batch.run_id, "batch": batch.batch_id})


def committing_query(metadata: str) -> str | None:
    """The id of the query that made a commit, from its metadata; None if another program made it."""
    if len(metadata) > _METADATA_LIMIT:
        return None
    try:
        fields = json.loads(metadata)
    except (ValueError, RecursionError):
        return None
    query = fields.get("query") if isinstance(fields, dict) and fields.get(_MARK) == _FORM else None
    return query if isinstance(query, str) else None


def decide(
    stored: StoredCommit | None, offset: int, query_id: str, committed_before: bool, renew: bool = False
) -> CommitDecision:
    """Decide about one partition. `committed_before`: this run has already committed there."""
    if stored is None:
        return CommitDecision.COMMIT
    query = committing_query(stored.metadata)
    if query is None:
        return CommitDecision.FOREIGN
    if query != query_id and committed_before:
        return CommitDecision.OTHER_QUERY
    if offset == stored.offset:
        return CommitDecision.COMMIT if renew else CommitDecision.SKIP
    return CommitDecision.COMMIT if offset > stored.offset else CommitDecision.BEHIND


def plan_commits(
    batch: FinishedBatch, stored: Mapping[Place, StoredCommit], committed: Collection[Place], renew: bool = False
) -> CommitPlan:
    """Plan the commits of a batch. `committed` are the partitions in which this run has already committed."""
    decisions = {
        place: decide(stored.get(place), offset, batch.query_id, place in committed, renew)
        for place, offset in sorted(batch.offsets.items())
    }
    for place, decision in decisions.items():
        if decision in _REFUSALS:
            topic, partition = place
            found = stored[place].offset
            return CommitPlan({}, {}, f"{_REFUSALS[decision]} (offset {found} of {topic}-{partition})")
    return CommitPlan(
        {place: batch.offsets[place] for place, decision in decisions.items() if decision is CommitDecision.COMMIT},
        {place: batch.offsets[place] for place, decision in decisions.items() if decision is CommitDecision.BEHIND},
    )


_REFUSALS = {
    CommitDecision.FOREIGN: "the group has a commit of another program",
    CommitDecision.OTHER_QUERY: "another query commits in this group",
}
