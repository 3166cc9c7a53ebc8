"""What a rule can be about: the value of each kind, its unit, its levels, and the text that describes it."""

from dataclasses import dataclass
from enum import Enum

from coordinator_core.alerts import Aggregate
from coordinator_core.health import BURROW_RULES, GROUP_RULES, Status


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
FINDINGS = (*(rule.name for rule in GROUP_RULES), *(f"burrow_{rule.number}" for rule in BURROW_RULES if rule.status != Status.OK))

STATUSES = tuple(status.value for status in Status)
#: Statuses that are an absence of knowledge.
UNKNOWN_STATUSES = ("UNKNOWN", "NOTFOUND")
#: Statuses of a group with a defect: default of `in` beside `findings`.
DEFECTS = tuple(status for status in STATUSES if status not in (*UNKNOWN_STATUSES, "OK"))


@dataclass(frozen=True)
class Kind:
    """A kind of rule.

    - `level`: default of `per`; None if the alerts have no group. `aggregate`: how values of partitions become one.
    - `window_ms`: default of `window`; None without one.
    - `needs_current_tables`: values of tables whose last batch is old are unknown.
    - `details`: further placeholders. `summary`: default of the annotation.
    """

    unit: Unit
    summary: str
    level: str | None = None
    aggregate: Aggregate | None = None
    window_ms: int | None = None
    needs_current_tables: bool = True
    details: tuple[str, ...] = ()

    @property
    def placeholders(self) -> frozenset[str]:
        """Placeholders beside the labels."""
        return frozenset({"value", "alertname", "severity", *self.details})


_PARTITIONS = ("partitions", "unknown_partitions")

KINDS = {
    "status": Kind(
        Unit.TEXT, "group {group} is {value}: {detail}", level="group", details=("status_rule", "detail"),
    ),
    "lag": Kind(Unit.COUNT, "group {group} is {value} records behind", "group", Aggregate.SUM, details=_PARTITIONS),
    "lag_seconds_low": Kind(
        Unit.SECONDS, "group {group} is at least {value} behind", "group", Aggregate.MAX, details=_PARTITIONS
    ),
    "messages_lost": Kind(
        Unit.COUNT, "{value} records were deleted before group {group} read them", "group", Aggregate.SUM, details=_PARTITIONS
    ),
    "retention_margin": Kind(
        Unit.SECONDS,
        "retention deletes unread records of group {group} in {value}",
        "group",
        Aggregate.MIN,
        details=_PARTITIONS,
    ),
    "expires_in": Kind(
        Unit.SECONDS, "a committed offset of group {group} expires in {value}", "group", Aggregate.MIN, details=_PARTITIONS
    ),
    "rebalance_storm": Kind(Unit.COUNT, "group {group} rebalanced {value} times", "group", window_ms=600_000),
    "quarantine": Kind(Unit.COUNT, "{value} records could not be decoded", window_ms=3_600_000),
    "batch_age": Kind(Unit.SECONDS, "the last batch of the tables is {value} old", needs_current_tables=False),
    "sample_age": Kind(Unit.SECONDS, "the last sample of end offsets is {value} old", needs_current_tables=False),
    "sql": Kind(Unit.COUNT, "{alertname}: {value}"),
}  # fmt: skip
