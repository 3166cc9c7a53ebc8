"""Losses in any order of commits, deletions, samples and reads of the groups' log: stated where they are proven, and exactly."""

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lag_samples import LagCase, as_columns, as_row, sample, without_times
from model_of_lag import Commit, LagRow, TopicFacts

from coordinator_core.health import EndOffsetSample

#: What happens, and a number that chooses how far it goes.
Step = tuple[str, int]

WEEK_MS = 7 * 86_400_000
SETTINGS = TopicFacts(retention_ms=WEEK_MS, size_limited=False)
_CONSUMING = ["write", "commit", "prepare", "complete", "purge", "sample", "ask", "answer", "read"]
purges = st.lists(st.tuples(st.sampled_from(_CONSUMING), st.integers(0, 7)), max_size=40)
losses = st.lists(st.tuples(st.sampled_from([*_CONSUMING, "retention"]), st.integers(0, 7)), max_size=40)


@dataclass
class Reader:
    """A group that reads a topic partition, and a job that samples its log start and reads its commits, a step a millisecond.

    - `prepare`: a transaction with an offset commit ends; its marker follows with `complete`. Until then brokers answer with the
      offset before it.
    - `purge`: deletes up to the offset that was committed last, also by a transaction without its marker, as Kafka Streams does.
    - `retention`: deletes without regard to commits.
    - `ask`, `answer`: a sample in flight, whose log start is that of a time in between.
    """

    now_ms: int = 0
    start: int = 0
    end: int = 0
    committed: int = 0
    pending: int | None = None
    in_flight: tuple[int, int, int] | None = None
    samples: list[EndOffsetSample] = field(default_factory=list)
    #: Commit, pending offset, time of the request, and log start then: as the job read them last.
    known: tuple[Commit, int, int] | None = None

    @property
    def position(self) -> int:
        return self.committed if self.pending is None else max(self.committed, self.pending)

    def take(self, step: Step) -> None:
        name, number = step
        self.now_ms += 1
        match name:
            case "write":
                self.end += number
            case "commit":
                self.committed = min(self.end, max(self.position, self.start) + number)
                self.pending = None
            case "prepare":
                self.pending = min(self.end, max(self.position, self.start) + number)
            case "complete" if self.pending is not None:
                self.committed, self.pending = max(self.committed, self.pending), None
            case "purge":
                self.start = max(self.start, self.position)
            case "retention":
                self.start = min(self.end, self.start + number)
            case "sample":
                self.take(("ask", 0))
                self.take(("answer", 0))
            case "ask":
                self.in_flight = self.now_ms, self.start, self.end
            case "answer" if self.in_flight is not None:
                asked, start, end = self.in_flight
                self.samples.append(sample(asked, end, start, answered_at_ms=self.now_ms))
                self.in_flight = None
            case "read":
                self.known = Commit(self.committed, pending_offset=self.pending), self.now_ms, self.start

    def lag(self) -> LagRow | None:
        """What the job states by now."""
        if self.known is None or not self.samples:
            return None
        commit, read_until_ms, _ = self.known
        case = LagCase(commit, tuple(self.samples), SETTINGS, read_until_ms=read_until_ms)
        assert without_times(as_columns([case])).to_pylist() == [as_row(case.lag(), case.committed_at_ms)]
        return case.lag()


@given(purges)
@example([("write", 5), ("read", 0), ("commit", 5), ("purge", 0), ("sample", 0)])
@example([("write", 5), ("commit", 2), ("prepare", 3), ("purge", 0), ("sample", 0), ("read", 0)])
@example([("write", 5), ("commit", 2), ("read", 0), ("ask", 0), ("commit", 3), ("purge", 0), ("answer", 0), ("read", 0)])
def test_records_that_were_deleted_up_to_a_commit_are_never_lost(steps: list[Step]) -> None:
    reader = Reader()
    for step in steps:
        reader.take(step)
        lag = reader.lag()
        assert lag is None or not lag.messages_lost, step
        # nor are they about to be deleted, as young as the log start is
        assert lag is None or lag.retention_margin_seconds in (None, pytest.approx(WEEK_MS / 1000, abs=1)), step


@given(losses)
@example([("write", 5), ("commit", 2), ("retention", 4), ("sample", 0), ("read", 0)])
def test_a_loss_is_never_greater_than_it_was_when_the_commits_were_read(steps: list[Step]) -> None:
    reader = Reader()
    for step in steps:
        reader.take(step)
        lag = reader.lag()
        if lag is not None and lag.messages_lost:
            assert reader.known is not None
            commit, _, start = reader.known
            position = max(commit.offset, commit.offset if commit.pending_offset is None else commit.pending_offset)
            assert lag.messages_lost <= start - position, step


@given(losses)
def test_a_loss_is_exact_once_the_commits_were_read_after_a_sample(steps: list[Step]) -> None:
    """Two samples with a read in between: that of a running job, and of one whose groups are paused."""
    reader = Reader()
    for step in steps:
        reader.take(step)
    for step in (("complete", 0), ("sample", 0), ("read", 0)):
        reader.take(step)
    lag = reader.lag()
    assert lag is not None
    assert lag.messages_lost == max(0, reader.start - reader.committed)
    assert (lag.lag_reason == "records_lost") == (reader.start > reader.committed and lag.lag_seconds is not None)


@given(losses)
def test_an_unknown_loss_is_named_as_such(steps: list[Step]) -> None:
    reader = Reader()
    for step in steps:
        reader.take(step)
        lag = reader.lag()
        if lag is None or lag.messages_lost is not None:
            continue
        assert lag.earliest_offset is not None
        assert lag.group_offset is not None
        # a commit beyond the log end was read after the sample
        assert lag.lag_reason in {"loss_unknown", "first_sample", "commit_beyond_end"}
        assert lag.retention_margin_seconds is None
        assert lag.earliest_offset > lag.group_offset or lag.lag_reason == "commit_beyond_end"
