"""Thinning of old samples (`lag.keep`): the older a sample, the wider its distance to the next one.

Every subset of the samples gives true bounds of ages. Thinning only makes them wider, to at most twice the distance of the
rule, or the distance of the original samples where that is greater.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from coordinator_core.health.durations import parse_duration_ms


class KeepRule(NamedTuple):
    """Samples of up to `age_ms` are kept at a distance of `distance_ms`; 0 keeps all."""

    age_ms: int
    distance_ms: int


#: All samples of an hour, one a minute for a day, one in ten minutes for 30 days.
DEFAULT_KEEP = (KeepRule(3_600_000, 0), KeepRule(86_400_000, 60_000), KeepRule(30 * 86_400_000, 600_000))


def keep_rules(text: str) -> tuple[KeepRule, ...]:
    """Parse a `lag.keep` value such as `1h:all 24h:1m 30d:10m`: ages with the distance of the samples up to that age.

    Raises ValueError unless ages rise and each distance is a multiple of the one before it.
    """
    rules = tuple(_rule(part, text) for part in text.split())
    if not rules:
        raise ValueError("lag.keep is empty: use a value such as '1h:all 24h:1m 30d:10m'")
    for before, after in pairwise(rules):
        if after.age_ms <= before.age_ms:
            raise ValueError(f"lag.keep {text!r}: ages must rise")
        if after.distance_ms < before.distance_ms or (before.distance_ms and after.distance_ms % before.distance_ms):
            raise ValueError(f"lag.keep {text!r}: each distance must be a multiple of the one before it")
    return rules


class RetentionSpan(NamedTuple):
    """Spans of `distance_ms` for samples from `from_ms` on."""

    from_ms: int
    distance_ms: int


def spans_of(now_ms: int, rules: Sequence[KeepRule]) -> tuple[RetentionSpan, ...]:
    """Spans for each rule. None is split by the age of a rule: so thinning again later gives the same as thinning once."""
    found = []
    for rule, older in zip(rules, (*rules[1:], rules[-1]), strict=True):
        oldest = now_ms - rule.age_ms
        found.append(RetentionSpan(oldest - oldest % (older.distance_ms or 1), rule.distance_ms))
    return tuple(found)


def _rule(part: str, text: str) -> KeepRule:
    age, _, distance = part.partition(":")
    return KeepRule(_milliseconds(age, text), 0 if distance == "all" else _milliseconds(distance, text))


def _milliseconds(duration: str, text: str) -> int:
    try:
        found = parse_duration_ms(duration)
    except ValueError:
        found = 0
    if not found:
        raise ValueError(f"lag.keep {text!r}: invalid duration {duration!r}, use one such as 90s, 24h or 30d")
    return found
