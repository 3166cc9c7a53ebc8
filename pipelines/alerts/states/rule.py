"""Rules as the state machine sees them, and observations for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipelines.alerts.states.labels import ALERT_NAME, Labels, labels_of
from pipelines.alerts.states.template import Template

_DAY_MS = 86_400_000


class Seen(Enum):
    """Result of a condition for one alert: `ABSENT` if it has no rows any more, as after the deletion of a group."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"
    ABSENT = "absent"


@dataclass(frozen=True)
class Observation:
    """The value of one alert at an evaluation. `details` are further values for placeholders."""

    labels: Labels
    holds: bool | None
    value: float | str | None = None
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> Seen:
        """The result of the condition."""
        return Seen.UNKNOWN if self.holds is None else Seen.TRUE if self.holds else Seen.FALSE


@dataclass(frozen=True)
class Rule:
    """A rule without its source.

    - `for_ms`: the condition has to be known to hold for this time before the alert fires.
    - `keep_firing_for_ms`: a firing alert has to be known to be clear for this time before it is resolved.
    - `unknown_for_ms`: a pending or firing alert keeps its state for this time while the value is unknown.
    """

    name: str
    for_ms: int = 0
    keep_firing_for_ms: int = 0
    unknown_for_ms: int = _DAY_MS
    labels: Labels = ()
    annotations: tuple[tuple[str, Template], ...] = ()

    def labels_of(self, observed: Labels, added: Labels = ()) -> Labels:
        """All labels of an alert. Those of the rule replace `added`, and those that identify the alert replace both."""
        return labels_of({**dict(added), **dict(self.labels), **dict(observed), ALERT_NAME: self.name})


@dataclass(frozen=True)
class RuleResult:
    """Observations of a rule; None if the rule could not be evaluated, so that all its alerts are unknown."""

    rule: Rule
    observations: Mapping[Labels, Observation] | None
