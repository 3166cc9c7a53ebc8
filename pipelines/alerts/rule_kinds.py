"""The kinds of rules: the value of each kind, its unit, its levels, and the text that describes it."""

from dataclasses import dataclass
from enum import Enum

from coordinator_core.health import BURROW_RULES, FORMER_NAMES, GROUP_RULES, Status
from pipelines.alerts.finding_texts import WORDS
from pipelines.alerts.states import Aggregate


class Unit(Enum):
    """Unit of a value."""

    COUNT = "count"
    SECONDS = "seconds"
    TEXT = "text"


#: Level → columns that identify an alert.
LEVELS = {"group": ("group_id",), "topic": ("group_id", "topic"), "partition": ("group_id", "topic", "partition")}

#: Column → label.
LABEL_NAMES = {"group_id": "group", "topic": "topic", "partition": "partition"}

#: Rules of the health of groups, which `findings` can name.
FINDINGS = tuple(rule.name for rule in (*GROUP_RULES, *BURROW_RULES) if rule.status != Status.OK)
#: Former names, which files of rules may still have.
FORMER_FINDINGS = {former: name for former, name in FORMER_NAMES.items() if name in FINDINGS}

STATUSES = tuple(status.value for status in Status)
#: Statuses that are an absence of knowledge.
UNKNOWN_STATUSES = ("UNKNOWN", "NOTFOUND")
#: Statuses of a group with a defect: default of `in` beside `findings`.
DEFECTS = tuple(status for status in STATUSES if status not in (*UNKNOWN_STATUSES, "OK"))


@dataclass(frozen=True)
class RuleKind:
    """A kind of rule.

    - `counted`: what a number of the unit COUNT counts.
    - `level`: default of `per`; None if the alerts have no group. `aggregate`: how values of partitions become one.
    - `window_ms`: default of `window`; None without one.
    - `needs_current_tables`: values of tables whose last batch is old are unknown.
    - `has_expected_value`: `above = "expected"` is a condition, whose limit follows from the interval of the job.
    - `details`: further placeholders. `summary`, `description`: defaults of the annotations.
    - `findings`: rules of the health of groups whose findings explain an alert; empty for all.
    """

    unit: Unit
    summary: str
    level: str | None = None
    aggregate: Aggregate | None = None
    window_ms: int | None = None
    needs_current_tables: bool = True
    has_expected_value: bool = False
    details: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    description: str = "{finding}"
    counted: str | None = None

    @property
    def unit_name(self) -> str | None:
        """Unit of a value in `alert_history`; None for a text, and for a query, whose unit only its author knows."""
        return Unit.SECONDS.value if self.unit is Unit.SECONDS else self.counted

    @property
    def placeholders(self) -> frozenset[str]:
        """Placeholders beside the labels."""
        return frozenset({"value", "alertname", "severity", *self.details, *(WORDS if self.level is not None else ())})


_PARTITIONS = ("partitions", "unknown_partitions")

KINDS = {
    "status": RuleKind(
        Unit.TEXT, "group {group} is {value}: {detail}", level="group", details=("status_rule", "detail"),
        description="{advice}",
    ),
    "lag": RuleKind(
        Unit.COUNT, "group {group} is {value} records behind", "group", Aggregate.SUM, details=_PARTITIONS, counted="records"
    ),
    "lag_seconds_low": RuleKind(
        Unit.SECONDS, "group {group} is at least {value} behind", "group", Aggregate.MAX, details=_PARTITIONS
    ),
    "messages_lost": RuleKind(
        Unit.COUNT, "{value} records were deleted before group {group} read them", "group", Aggregate.SUM, details=_PARTITIONS,
        findings=("data_lost",), counted="records",
    ),
    "retention_margin": RuleKind(
        Unit.SECONDS,
        "retention deletes unread records of group {group} in {value}",
        "group",
        Aggregate.MIN,
        details=_PARTITIONS,
        findings=("near_retention",),
    ),
    "expires_in": RuleKind(
        Unit.SECONDS, "a committed offset of group {group} expires in {value}", "group", Aggregate.MIN, details=_PARTITIONS,
        findings=("offsets_expiring",),
    ),
    "rebalance_storm": RuleKind(Unit.COUNT, "group {group} rebalanced {value} times", "group", window_ms=600_000,
        findings=("rebalance_storm",), counted="rebalances",
    ),
    "quarantine": RuleKind(Unit.COUNT, "{value} records could not be decoded", window_ms=3_600_000, counted="records"),
    "batch_age": RuleKind(
        Unit.SECONDS, "the last batch of the tables is {value} old", needs_current_tables=False, has_expected_value=True
    ),
    "sample_age": RuleKind(
        Unit.SECONDS, "the last sample of end offsets is {value} old", needs_current_tables=False, has_expected_value=True
    ),
    "sql": RuleKind(Unit.COUNT, "{alertname}: {value}"),
}  # fmt: skip
