"""Results of the tools: their fields, units and meaning, which clients read as JSON schemas.

Rows take the values of the models of pages by name, so that a tool cannot say another thing than its page.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipelines.dashboard.agents.bounds import NAMES_ARE

#: Seconds, or a value per second, in the precision that a reader can use.
Tenths = Annotated[float, AfterValidator(lambda value: round(value, 1))]
Thousandths = Annotated[float, AfterValidator(lambda value: round(value, 3))]


class AnswerPart(BaseModel):
    """Part of an answer."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of_all(cls, rows: Iterable[Mapping[str, Any]]) -> list[Self]:
        """The rows with the fields of this class; further values are left out."""
        return [cls.model_validate(row) for row in rows]


class AgentAnswer(AnswerPart):
    """What each answer says about itself."""

    names_are: str = NAMES_ARE
    cluster: str
    at: datetime = Field(description="The time of the answer: the one that was asked for, or that of the newest sample")
    batch_id: int = Field(description="The batch whose tables were read; `at` accepts it")
    data_until: datetime = Field(description="Completion of that batch: nothing later is known to this answer")
    sampled_at: datetime | None = Field(description="Time of the sample of log ends, from which lag follows; null without one")
    data_age_seconds: Tenths = Field(description="From data_until to `at`, or to now if no time was asked for")
    is_newest: bool = Field(description="Whether the batch is the newest one of the tables")
    warning: str | None = Field(description="Why the answer says less than usual: old data, or tables that were removed")
    cut: str | None = Field(default=None, description="What was left out, and how to ask for it; null if nothing was")


class IncidentAnswer(AnswerPart):
    rule: str
    status: str
    sentence: str = Field(description="The cause, with its partitions and owner")
    since: datetime | None = None
    since_is_latest: bool = Field(default=False, description="True: it began at `since` or earlier")
    consequence: str = ""
    next_step: str = ""
    partitions: int = Field(description="Number of partitions; 0 or 1 for a finding of the group")
    symptoms: list["SymptomAnswer"] = []


class SymptomAnswer(AnswerPart):
    rule: str
    status: str
    sentence: str


class GroupAnswer(AnswerPart):
    group_id: str
    owner: str | None = Field(default=None, description="Team that owns the group, by dashboard.owners_file")
    group_type: str | None
    state: str | None
    member_count: int | None
    status: str | None = Field(description="Null if unknown")
    lag: int | None = Field(description="Records between the committed offsets and the log ends; null if unknown")
    lag_seconds: Tenths | None = Field(description="Age of the oldest record to read")
    lag_seconds_low: Tenths | None
    lag_seconds_high: Tenths | None = Field(description="Null: no upper bound")
    lag_slope_per_second: Thousandths | None = Field(description="Growth of the lag, records per second; below 0: it shrinks")
    retention_margin_seconds: Tenths | None = Field(description="Until retention deletes records that the group has not read")
    last_commit_at: datetime | None = Field(description="Of polled groups the time of the poll that saw it")
    reasons: list[str] = Field(description="The cause of each incident, the most severe first; tool `group` has more")


class GroupsAnswer(AgentAnswer):
    total: int = Field(description="Groups of the cluster")
    found: int = Field(description="Groups that the filters match")
    groups: list[GroupAnswer]
    next: str | None = Field(default=None, description="`after` of the next page; null on the last one")


class MemberAnswer(AnswerPart):
    member_id: str
    client_id: str | None
    client_host: str | None
    group_instance_id: str | None
    owns: dict[str, list[int]] | None = Field(description="Partitions by topic; null if they cannot be known")


class PartitionAnswer(AnswerPart):
    topic: str
    partition: int
    client_id: str | None = Field(description="Client id of the owner; null without one")
    member_host: str | None
    group_offset: int | None = Field(description="Committed offset")
    committed_at: datetime | None = Field(description="Of a commit that was polled: the poll that saw it first")
    committed_after: datetime | None = Field(description="Of a commit that was polled: it was made after this poll; else null")
    latest_offset: int | None = Field(description="Log end")
    lag: int | None = Field(description="Records")
    lag_seconds: Tenths | None
    lag_seconds_low: Tenths | None
    lag_seconds_high: Tenths | None
    lag_reason: str | None = Field(description="Why a value is unknown or limited")
    status: str | None


class SharePartitionAnswer(AnswerPart):
    topic: str | None = Field(description="Null with partition: the reason is about the group")
    partition: int | None
    start_offset: int | None = Field(description="Not a position: records after it may be acknowledged")
    lag: int | None = Field(description="Records that are not acknowledged; null before Kafka 4.2")
    reason: str | None = Field(description="Error of the coordinator instead of an offset")


class OneGroupAnswer(AgentAnswer):
    group_id: str
    owner: str | None = Field(description="Team that owns the group")
    exists: bool = Field(description="False: only the histories have the group")
    state: str | None
    group_type: str | None
    assignor: str | None
    generation: int | None
    status: str | None
    findings: list[IncidentAnswer] = Field(description="Incidents: cause, since when, owner, next step; the most severe first")
    lag: int | None = Field(description="Records")
    lag_seconds: Tenths | None
    lag_seconds_low: Tenths | None
    lag_seconds_high: Tenths | None
    lag_slope_per_second: Thousandths | None
    produce_rate: Thousandths | None = Field(description="Records per second")
    consume_rate: Thousandths | None = Field(description="Records per second")
    retention_margin_seconds: Tenths | None
    messages_lost: int | None
    last_commit_at: datetime | None = Field(description="Of polled groups the time of the poll that saw it")
    member_facts: list[str]
    members: list[MemberAnswer]
    partitions: list[PartitionAnswer] = Field(description="The greatest age first")
    share_partitions: list[SharePartitionAnswer] = Field(description="Of a share group, which has no committed offsets")


class ChangeAnswer(AnswerPart):
    group_id: str
    change: str
    topic: str | None
    partition: int | None
    partitions: int | None = Field(description="Number of partitions that the row adds up")
    by: int | None = Field(description="Sum of the movements of offsets")
    from_: str | None = Field(alias="from")
    to: str | None
    detail: str | None


class ChangesAnswer(AgentAnswer):
    from_: datetime = Field(alias="from")
    summary: str
    changes: list[ChangeAnswer]


class EventAnswer(AnswerPart):
    at: datetime
    kind: str
    words: str
    events: list["EventAnswer"] = Field(default=[], description="Of a storm: some of its rebalances, the newest first")


class TimelineAnswer(AgentAnswer):
    group_id: str
    start: datetime
    rebalances: int = Field(description="Rebalances in the span; from polls, those between two of them count as one")
    partitions_moved: int = Field(description="By all of them")
    seconds_without_owner: Tenths = Field(description="Of partitions, added up over all of them")
    resets: int = Field(description="Resets, one per partition")
    greatest_lag: int | None = Field(description="Records, in the samples of the span")
    greatest_lag_seconds: Tenths | None
    events: list[EventAnswer] = Field(description="The newest first")


class StayAnswer(AnswerPart):
    group_id: str
    topic: str | None
    partition: int
    member_id: str
    client_id: str | None
    client_host: str | None
    since: datetime | None = Field(description="Null: before the histories begin")
    until: datetime | None = Field(description="Null: still at the end of the batch")


class OwnersAnswer(AgentAnswer):
    start: datetime
    stays: list[StayAnswer]


class ExpiryAnswer(AnswerPart):
    group_id: str
    topic: str
    partitions: int
    expires_at: datetime = Field(description="When the broker removes the first of these offsets if nothing changes")
    expires_in_seconds: Tenths = Field(description="From the time of the answer; below 0: overdue")
    state: str | None = Field(description="State of the group")


class ExpiringAnswer(AgentAnswer):
    until: datetime
    expiring: list[ExpiryAnswer]


class BlockedAnswer(AnswerPart):
    group_id: str
    topic: str
    partition: int
    transactional_id: str | None = Field(description="Null if unknown: transactions are read with `run --transactions`")
    producer_id: int | None
    state: str | None
    waits_since: datetime | None = Field(description="Start of the transaction, or the record of the offset that waits")
    committed_offset: int | None = Field(description="Offset of the group that waits for the commit; null: records are hidden")


class TransactionsAnswer(AgentAnswer):
    blocked: list[BlockedAnswer] = Field(description="Positions that wait for the end of an open transaction")


class SqlAnswer(AgentAnswer):
    columns: list[dict[str, str]] = Field(description="Name and type")
    rows: list[list[Any]]
