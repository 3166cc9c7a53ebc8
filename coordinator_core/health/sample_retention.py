"""Thinning of old samples (`lag.keep`): the older a sample, the wider its distance to the next one.

Every subset of the samples gives true bounds of ages. Thinning only makes them wider, to at most twice the distance of the
rule, or the distance of the original samples where that is greater.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from coordinator_core.health.end_offsets import EndOffsetSample
from coordinator_core.health.incarnations import incarnation_start

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([1-9]\d*)([smhd])")


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


def thin(
    samples: Sequence[EndOffsetSample], now_ms: int, rules: Sequence[KeepRule] = DEFAULT_KEEP
) -> tuple[EndOffsetSample, ...]:
    """Thin the samples of one topic partition, oldest first.

    These samples remain:

    - the last one of each span of a rule's distance, and the first one after an empty span: it may be the end of a folded run;
    - both samples around a recreation or truncation;
    - the newest sample that is older than all rules, while newer ones exist: a record that no member has read for 30 days grows
      older still.
    """
    spans = spans_of(now_ms, rules)
    horizon = spans[-1].from_ms
    if not samples or samples[-1].answered_at_ms < horizon:
        return ()
    events = _events(samples)
    old = [k for k, sample in enumerate(samples) if sample.answered_at_ms < horizon and sample.reason is None]
    oldest = old[-1] if old else 0
    kept = {oldest, len(samples) - 1, *events[-2:], *(k for k in events if k >= oldest)}
    kept |= {k for k in _of_spans(samples, spans) if samples[k].answered_at_ms >= horizon}
    return tuple(samples[k] for k in sorted(kept))


def _events(samples: Sequence[EndOffsetSample]) -> list[int]:
    """Positions of the samples just before and just after each recreation or truncation."""
    successful = [k for k, sample in enumerate(samples) if sample.reason is None]
    pairs = [pair for pair in pairwise(successful) if incarnation_start(*(samples[k] for k in pair)) is not None]
    return [k for pair in pairs for k in pair]


class _Spans(NamedTuple):
    """Spans of `distance_ms` for samples from `from_ms` on."""

    from_ms: int
    distance_ms: int


def spans_of(now_ms: int, rules: Sequence[KeepRule]) -> tuple[_Spans, ...]:
    """Spans for each rule. None is split by the age of a rule: so thinning again later gives the same as thinning once."""
    found = []
    for rule, older in zip(rules, (*rules[1:], rules[-1]), strict=True):
        oldest = now_ms - rule.age_ms
        found.append(_Spans(oldest - oldest % (older.distance_ms or 1), rule.distance_ms))
    return tuple(found)


def _of_spans(samples: Sequence[EndOffsetSample], spans: Sequence[_Spans]) -> set[int]:
    """Positions of the last sample of each span, and of the first after an empty span; failed samples have their own spans."""
    lasts: dict[tuple[int, bool, int], int] = {}
    firsts = set()
    before: dict[bool, int] = {}
    for k, sample in enumerate(samples):
        good, at = sample.reason is None, sample.answered_at_ms
        distance = next((s.distance_ms for s in spans if at >= s.from_ms), spans[-1].distance_ms)
        # without a distance every sample is a span of its own
        number = at // distance if distance else k
        lasts[distance, good, number] = k
        if distance and (good not in before or before[good] // distance < number - 1):
            firsts.add(k)
        before[good] = at
    return firsts | set(lasts.values())


def _rule(part: str, text: str) -> KeepRule:
    age, _, distance = part.partition(":")
    return KeepRule(_milliseconds(age, text), 0 if distance == "all" else _milliseconds(distance, text))


def _milliseconds(duration: str, text: str) -> int:
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise ValueError(f"lag.keep {text!r}: invalid duration {duration!r}, use a number with s, m, h or d")
    return int(match[1]) * _UNITS[match[2]]
