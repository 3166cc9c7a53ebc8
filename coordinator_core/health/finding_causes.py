"""Causes before symptoms: the findings of a group as incidents, one per root cause.

A row of EXPLANATIONS states which rule explains which others, and under which condition on the two findings. A symptom keeps the
rule of its root cause in `caused_by`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from coordinator_core.health.finding_text import Text, rule_word, text_of
from coordinator_core.health.status import Finding, Status

#: Cause, symptom → whether the one explains the other.
Condition = Callable[[Finding, Finding], bool]


class Explanation(NamedTuple):
    """A finding of the rule `cause` explains findings of the rules `symptoms` where the condition holds.

    Both are about the same partition, unless the cause `is_of_group`.
    """

    cause: str
    symptoms: tuple[str, ...]
    condition: Condition = lambda _cause, _symptom: True
    is_of_group: bool = False


class Incident(NamedTuple):
    """Findings of a root cause, with its symptoms by rule.

    `status` is the most severe one of both.
    """

    rule: str
    status: Status
    found: tuple[Finding, ...]
    symptoms: tuple[tuple[Finding, ...], ...] = ()

    def text(self, at_ms: int) -> Text:
        """The words about the cause."""
        return text_of(self.found, at_ms)

    @property
    def findings(self) -> Iterable[Finding]:
        """The findings of the cause, then those of the symptoms."""
        yield from self.found
        for symptom in self.symptoms:
            yield from symptom


def _moved_back(cause: Finding, _symptom: Finding) -> bool:
    return cause.from_offset is not None and cause.to_offset is not None and cause.to_offset < cause.from_offset


def _not_long_before(cause: Finding, symptom: Finding) -> bool:
    """The symptom began during the window of the cause, or in the time of one window before it."""
    if cause.since_ms is None or symptom.since_ms is None or cause.window_seconds is None:
        return True
    return symptom.since_ms >= cause.since_ms - 1000 * cause.window_seconds


def _of_one_partition(_cause: Finding, symptom: Finding) -> bool:
    """A group that falls behind on several partitions of a topic is slow for all of them."""
    return symptom.rule != "falls_behind" or symptom.window_rows in (None, 1)


#: In the order in which causes are looked for; a rule is explained by rules of earlier rows only.
EXPLANATIONS = (
    Explanation(
        "hanging_transaction",
        ("stopped", "stalled", "hot_partition", "falls_behind", "lag_never_fell", "near_retention", "data_lost", "skew"),
    ),
    Explanation("reset", ("went_back", "hot_partition", "lag_never_fell", "near_retention"), _moved_back),
    Explanation("rewound", ("went_back", "hot_partition", "lag_never_fell", "near_retention"), _moved_back),
    Explanation("rebalance_storm", ("stopped", "stalled", "falls_behind", "lag_never_fell"), _not_long_before, is_of_group=True),
    Explanation("beyond_end", ("unknown",)),
    # the last commit is older than the deletion of a record after it
    Explanation("stopped", ("data_lost", "hot_partition", "near_retention", "offsets_expiring", "skew")),
    # a consumer below the log start makes no progress, whatever came first
    Explanation("data_lost", ("stalled", "hot_partition", "lag_never_fell", "near_retention", "skew")),
    Explanation("stalled", ("hot_partition", "near_retention", "skew")),
    Explanation("hot_partition", ("falls_behind", "lag_never_fell", "near_retention", "skew"), _of_one_partition),
    Explanation("falls_behind", ("lag_never_fell", "near_retention", "skew")),
    Explanation("lag_never_fell", ("near_retention", "skew")),
)


def incidents(findings: Iterable[Finding], explanations: Sequence[Explanation] = EXPLANATIONS) -> tuple[Incident, ...]:
    """The incidents of a group, the most severe first. Findings of one rule and one transaction are one incident."""
    given = list(findings)
    cause_of = _causes(given, explanations)
    members: dict[tuple[str, str | None], list[Finding]] = {}
    symptoms: dict[tuple[str, str | None], dict[str, list[Finding]]] = {}
    for finding in given:
        root = cause_of.get(id(finding))
        if root is None:
            members.setdefault(_key(finding), []).append(finding._replace(caused_by=None))
        else:
            by_rule = symptoms.setdefault(_key(root), {})
            by_rule.setdefault(rule_word(finding.rule), []).append(finding._replace(caused_by=rule_word(root.rule)))
    found = [
        _incident(key[0], causes, sorted(symptoms.get(key, {}).values(), key=_least_severe_last))
        for key, causes in members.items()
    ]
    # sorting is stable: of equal severity the first one decides
    return tuple(sorted(found, key=lambda incident: -incident.status.severity))


def _incident(rule: str, causes: Sequence[Finding], symptoms: Sequence[Sequence[Finding]]) -> Incident:
    worst = max((each.status for each in (*causes, *(s for of_rule in symptoms for s in of_rule))), key=lambda s: s.severity)
    return Incident(rule, worst, tuple(causes), tuple(map(tuple, symptoms)))


def _causes(findings: Sequence[Finding], explanations: Sequence[Explanation]) -> dict[int, Finding]:
    """The root cause of every finding that has one, by the identity of the finding.

    Rules of earlier rows are explained first, so a cause that is a symptom itself has its root already.
    """
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(rule_word(finding.rule), []).append(finding)
    roots: dict[int, Finding] = {}
    for explanation in explanations:
        of_cause = by_rule.get(explanation.cause, [])
        by_partition = {cause.partition: cause for cause in reversed(of_cause)}
        for symptom in (each for rule in explanation.symptoms if of_cause for each in by_rule.get(rule, ())):
            cause = of_cause[0] if explanation.is_of_group else by_partition.get(symptom.partition)
            # a cause without partition is about the whole group
            if cause is not None and id(symptom) not in roots and explanation.condition(cause, symptom):
                roots[id(symptom)] = roots.get(id(cause), cause)
    return roots


def _key(finding: Finding) -> tuple[str, str | None]:
    return rule_word(finding.rule), finding.transactional_id


def _least_severe_last(found: Sequence[Finding]) -> int:
    return -found[0].status.severity
