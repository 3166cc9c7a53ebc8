"""The file of rules: TOML with rules, owners and receivers. Every mistake is one line that names the rule and the key."""

import math
import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator_core.health.durations import parse_duration_ms
from coordinator_core.service.net.addresses import ListenAddress
from pipelines.alerts.receivers.alertmanager import Alertmanager
from pipelines.alerts.receivers.command import CommandReceiver
from pipelines.alerts.receivers.receiver import Receiver
from pipelines.alerts.receivers.smtp import Smtp
from pipelines.alerts.receivers.webhook import Webhook
from pipelines.alerts.rule_kinds import (
    DEFECTS,
    FINDINGS,
    FORMER_FINDINGS,
    KINDS,
    LABEL_NAMES,
    LEVELS,
    STATUSES,
    UNKNOWN_STATUSES,
    RuleKind,
    Unit,
)
from pipelines.alerts.section import Section
from pipelines.alerts.states import (
    ALERT_NAME,
    Above,
    Below,
    Condition,
    Grouping,
    Labels,
    OneOf,
    OwnerTeam,
    Rule,
    Template,
    labels_of,
)
from pipelines.query.statement import is_reading
from pipelines.runtime.configuration import PROFILES
from pipelines.runtime.errors import UsageError
from pipelines.runtime.listen_address import expect_loopback, listen_address

#: The commented example.
EXAMPLE = PROFILES / "examples" / "alerts.toml"

_HOUR_MS = 3_600_000
_RECEIVER_KINDS: dict[str, Callable[[str, Grouping, float, Section], Receiver]] = {
    "webhook": Webhook.of,
    "alertmanager": Alertmanager.of,
    "smtp": Smtp.of,
    "command": CommandReceiver.of,
}
_CONDITIONS = ("above", "below", "in")
#: A limit that follows from the interval of the job.
EXPECTED = "expected"


@dataclass(frozen=True)
class AlertRule:
    """A rule with its source. `per` is a level of LEVELS; `groups` and `topics` match whole names."""

    rule: Rule
    on: str
    condition: Condition
    per: str | None
    groups: re.Pattern[str] | None
    topics: re.Pattern[str] | None
    window_ms: int
    sql: str
    receivers: tuple[str, ...]
    #: Only groups with one of these findings, for a rule about the status.
    findings: tuple[str, ...] = ()

    @property
    def kind(self) -> RuleKind:
        """The kind of the rule."""
        return KINDS[self.on]


@dataclass(frozen=True)
class AboveExpected(Above):
    """The value is greater than the interval of the job lets one expect. Its limit is that of the tables."""


@dataclass(frozen=True)
class Probes:
    """The address of `/health`, empty for none, and whether it may be one that other machines reach."""

    listen: str = ""
    allow_remote: bool = False

    def address(self, given: str | None) -> ListenAddress | None:
        """The address from `--listen` or from the file; None if both are empty. Raises UsageError for an invalid one."""
        text, given_by = (given, "--listen") if given else (self.listen, "alerts.listen")
        if not text:
            return None
        endpoint = listen_address(text, given_by)
        if not self.allow_remote:
            expect_loopback(endpoint, "[alerts] allow_remote")
        return endpoint


@dataclass(frozen=True)
class AlertRules:
    """A file of rules. `receivers` has those that some rule or owner uses, and all others."""

    rules: tuple[AlertRule, ...]
    owners: tuple[OwnerTeam, ...]
    receivers: Mapping[str, Receiver]
    default_receivers: tuple[str, ...]
    every_ms: int
    #: None: it follows from the interval of the job.
    stale_after_ms: int | None
    history_days: int
    external_url: str
    probes: Probes = Probes()

    def rule(self, name: str) -> AlertRule:
        """The rule of that name."""
        return next(rule for rule in self.rules if rule.rule.name == name)

    @property
    def groupings(self) -> dict[str, Grouping]:
        """Groups and times of every receiver."""
        return {name: receiver.grouping for name, receiver in self.receivers.items()}


def load_owners(path: str) -> tuple[OwnerTeam, ...]:
    """The owners of a file of rules. Its receivers, and so their secrets, are not read.

    Raises:
        UsageError: the file cannot be read, or an owner is wrong.
    """
    top = _read(path, {})
    return _owners(top, top.raw("receivers") or {})


def load_rules(path: str, environment: Mapping[str, str] = os.environ) -> AlertRules:
    """Read and check a file of rules.

    Raises:
        UsageError: the file cannot be read, a key is unknown, or a value is wrong.
    """
    top = _read(path, environment)
    general = top.section("alerts")
    defaults = _grouping(general, Grouping(group_by=(ALERT_NAME,)))
    labels = general.labels("labels")
    receivers = {name: _receiver(name, section, defaults) for name, section in top.sections("receivers", "receiver").items()}
    default_receivers = general.known_names("receivers", receivers, "receiver") or ()
    owners = _owners(top, receivers)
    unknown_for_ms = general.duration_ms("unknown_for", 24 * _HOUR_MS)
    rules: dict[str, AlertRule] = {}
    for section in top.each("rules", _rule_name):
        rule = _rule(section, receivers, default_receivers, labels, unknown_for_ms)
        if rule.rule.name in rules:
            raise section.fail("name", "is the name of two rules")
        rules[rule.rule.name] = rule
    if not rules:
        raise UsageError(f"{path}: no rules: begin each with [[rules]]")
    loaded = AlertRules(
        rules=tuple(rules.values()),
        owners=owners,
        receivers=receivers,
        default_receivers=default_receivers,
        every_ms=general.positive_duration_ms("every", 30_000),
        stale_after_ms=_stale_after_ms(general),
        history_days=general.number("history_days", 90, 1, 36_500),
        external_url=general.text("external_url", ""),
        probes=Probes(general.text("listen", ""), general.flag("allow_remote", False)),
    )
    general.end()
    top.end()
    return loaded


def _stale_after_ms(general: Section) -> int | None:
    if general.raw("stale_after") in (None, EXPECTED):
        return None
    return general.positive_duration_ms("stale_after", 0)


def _rule_name(at: int, values: Mapping[str, Any]) -> str:
    name = values.get("name")
    return f'rule "{name}"' if isinstance(name, str) and name else f"rule {at}"


def _rule(
    section: Section, receivers: Mapping[str, Receiver], defaults: tuple[str, ...], labels: Labels, unknown_for_ms: int
) -> AlertRule:
    name = section.text("name")
    on = section.choice("on", tuple(KINDS))
    kind = KINDS[on]
    has_groups = kind.level is not None
    per = kind.level
    if kind.aggregate is not None:
        per = section.choice("per", tuple(LEVELS), kind.level)
    sql = section.text("sql") if on == "sql" else ""
    if sql and not is_reading(sql):
        raise section.fail("sql", "must be one SELECT statement")
    severity = section.text("severity", "")
    own = {**dict(labels), **dict(section.labels("labels")), **({"severity": severity} if severity else {})}
    rule = AlertRule(
        rule=Rule(
            name=name,
            for_ms=section.duration_ms("for", 0),
            keep_firing_for_ms=section.duration_ms("keep_firing_for", 0),
            unknown_for_ms=section.duration_ms("unknown_for", unknown_for_ms),
            labels=labels_of(own),
            annotations=_annotations(section, kind, per, set(own), on == "sql"),
        ),
        on=on,
        condition=_condition(section, kind, on),
        per=per,
        groups=section.pattern("groups") if has_groups else None,
        topics=section.pattern("topics") if kind.aggregate is not None else None,
        window_ms=0 if kind.window_ms is None else section.positive_duration_ms("window", kind.window_ms),
        sql=sql,
        receivers=section.known_names("receivers", receivers, "receiver") or (),
        findings=_findings(section) if on == "status" else (),
    )
    if not rule.receivers and not defaults:
        raise section.fail("receivers", "is missing, and [alerts] receivers has no default")
    section.end()
    return rule


def _findings(section: Section) -> tuple[str, ...]:
    findings = section.names("findings") or ()
    found = tuple(FORMER_FINDINGS.get(name, name) for name in findings)
    for name in found:
        if name not in FINDINGS:
            raise section.fail("findings", f"has {name!r}: must be one of {', '.join(FINDINGS)}")
    return found


def _annotations(
    section: Section, kind: RuleKind, per: str | None, labels: set[str], any_name: bool
) -> tuple[tuple[str, Template], ...]:
    """The texts of a rule; every placeholder has to be known, except those that a query can have as columns."""
    columns = LEVELS[per] if per is not None else ()
    known = kind.placeholders | labels | {LABEL_NAMES[column] for column in columns} | {"team"}
    description = {} if kind.level is None else {"description": kind.description}
    texts = {"summary": kind.summary, **description, **section.text_map("annotations")}
    for key, text in texts.items():
        unknown = sorted(Template(text).names - known)
        if unknown and not any_name:
            raise section.fail(f"annotations.{key}", f"has the placeholder {{{unknown[0]}}} (known: {', '.join(sorted(known))})")
    return tuple((key, Template(text)) for key, text in sorted(texts.items()))


def _condition(section: Section, kind: RuleKind, on: str) -> Condition:
    given = [key for key in _CONDITIONS if section.has(key)]
    values = {key: section.raw(key) for key in _CONDITIONS}
    if not given and on == "status" and section.has("findings"):
        return OneOf(DEFECTS, UNKNOWN_STATUSES)
    if len(given) != 1:
        raise section.fail("condition", f"needs exactly one of {', '.join(_CONDITIONS)}, not {len(given)}")
    (key,) = given
    if key == "in":
        texts = section.names("in") or ()
        if on == "status":
            for text in texts:
                if text not in STATUSES:
                    raise section.fail("in", f"has {text!r}: must be one of {', '.join(STATUSES)}")
            return OneOf(texts, UNKNOWN_STATUSES)
        if on == "sql":
            return OneOf(texts)
        raise section.fail("in", f'does not fit on = "{on}": use above or below')
    if on == "status":
        raise section.fail(key, 'does not fit on = "status": use in')
    if values[key] == EXPECTED and kind.has_expected_value and key == "above":
        return AboveExpected(math.inf)
    limit = _limit(section, key, values[key], kind.unit)
    return Above(limit) if key == "above" else Below(limit)


def _limit(section: Section, key: str, value: Any, unit: Unit) -> float:
    if unit is Unit.SECONDS and isinstance(value, str):
        try:
            return parse_duration_ms(value) / 1000
        except ValueError:
            pass
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
        return float(value)
    wanted = "a number of seconds, or a duration such as 5m" if unit is Unit.SECONDS else "a number"
    raise section.fail(key, f"is {value!r}: must be {wanted}")


def _read(path: str, environment: Mapping[str, str]) -> Section:
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"cannot read rules {path}: {error}") from error
    return Section(path, values, environment)


def _owners(top: Section, receivers: Collection[str]) -> tuple[OwnerTeam, ...]:
    return tuple(_owner(section, receivers) for section in top.each("owners", lambda at, _: f"owner {at}"))


def _owner(section: Section, receivers: Collection[str]) -> OwnerTeam:
    groups = section.pattern("groups")
    if groups is None:
        raise section.fail("groups", "is missing")
    labels = dict(section.labels("labels"))
    team = section.text("team", "")
    owner = OwnerTeam(
        groups,
        labels_of({**labels, **({"team": team} if team else {})}),
        section.known_names("receivers", receivers, "receiver") or (),
    )
    section.end()
    return owner


def _receiver(name: str, section: Section, defaults: Grouping) -> Receiver:
    kind = section.choice("kind", tuple(_RECEIVER_KINDS))
    if kind == "alertmanager":
        # it groups and repeats itself
        repeat_ms = section.positive_duration_ms("repeat_interval", 60_000)
        grouping = Grouping((), 0, 0, repeat_ms)
    else:
        grouping = _grouping(section, defaults, sends_resolved=section.flag("send_resolved", True))
    receiver = _RECEIVER_KINDS[kind](name, grouping, section.positive_duration_ms("timeout", 10_000) / 1000, section)
    section.end()
    return receiver


def _grouping(section: Section, defaults: Grouping, sends_resolved: bool = True) -> Grouping:
    return Grouping(
        group_by=section.names("group_by") or defaults.group_by,
        group_wait_ms=section.duration_ms("group_wait", defaults.group_wait_ms),
        group_interval_ms=section.duration_ms("group_interval", defaults.group_interval_ms),
        repeat_interval_ms=section.positive_duration_ms("repeat_interval", defaults.repeat_interval_ms),
        sends_resolved=sends_resolved,
    )
