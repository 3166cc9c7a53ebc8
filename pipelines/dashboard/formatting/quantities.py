"""Counts, rates and durations with units. Unknown values are an en dash, never 0."""

import math
from collections.abc import Mapping
from typing import Any

from coordinator_core.health.durations import LONGEST_SECONDS

UNKNOWN = "–"

#: Unit, its seconds, and the next smaller unit that is printed with it.
_UNITS = (("d", 86_400, "h"), ("h", 3_600, "min"), ("min", 60, "s"))
_SECONDS_OF = {"h": 3_600, "min": 60, "s": 1}
_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_MINUTE = 60
#: Bounds that differ by less than this share of the upper one say no more than the age between them.
_CLOSE = 0.05


def count(value: float | None) -> str:
    """A whole number with thousands separators: `25,862`."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def short_count(value: float | None) -> str:
    """At most three significant digits, for scales: `20 k`, `1.25 M`."""
    if value is None:
        return UNKNOWN
    for scale, unit in _SCALES:
        if abs(value) >= scale:
            return f"{_three_digits(value / scale)} {unit}"
    return _three_digits(value)


def duration(seconds: float | None) -> str:
    """At most two units: `6 d 23 h`, `4 min 10 s`, `12 s`, `0.4 s`; words for more than the years of the tables."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return f"−{duration(-seconds)}"
    if seconds > LONGEST_SECONDS:
        return "more than 9,999 years"
    if seconds < _MINUTE:
        return f"{_three_digits(seconds) if seconds < 10 else round(seconds)} s" if round(seconds) < _MINUTE else "1 min"
    for unit, size, smaller in _UNITS:
        whole = math.floor(seconds / size)
        if whole:
            rest = math.floor((seconds - whole * size) / _SECONDS_OF[smaller])
            return f"{whole:,} {unit} {rest} {smaller}" if rest else f"{whole:,} {unit}"
    return f"{round(seconds)} s"


def short_duration(seconds: float, room: int = 9) -> str:
    """A duration of at most `room` characters if its first unit has room, in whole numbers: `1 min 4 s`, `38 min`."""
    text = duration(min(seconds, LONGEST_SECONDS))
    return text if len(text) <= room else " ".join(text.split()[:2])


def age(row: Mapping[str, Any]) -> str:
    """The age `lag_seconds` of a row; `≥ 6 d 23 h` if it has no upper bound."""
    seconds = row["lag_seconds"]
    return f"≥ {duration(seconds)}" if seconds and row["lag_seconds_high"] is None else duration(seconds)


def interval(low: float | None, high: float | None) -> str:
    """Bounds of an age, written as ages are: `12–20 s`, `3 min 54 s–4 min 24 s`; empty if they are unknown or close."""
    if low is None or high is None or high - low < _CLOSE * high:
        return ""
    bounds = duration(low), duration(high)
    if bounds[0] == bounds[1]:
        return ""
    # a unit that both have, alone, is written once
    units = [text.split(" ")[1:] for text in bounds]
    first = bounds[0].split(" ")[0] if units[0] == units[1] and len(units[0]) == 1 else bounds[0]
    return f"{first}–{bounds[1]}"


def window(least: float, most: float) -> str:
    """The windows of trends: `12 min`, or `8–15 min` if they differ by a minute or more."""
    if most - least >= _MINUTE:
        return f"{max(1, round(least / _MINUTE))}–{round(most / _MINUTE)} min"
    return duration(round(most / _MINUTE) * _MINUTE) if most >= 2 * _MINUTE else duration(most)


def rate(per_second: float | None, noun: str = "") -> str:
    """A change per second, or per minute or hour if it is slow, with its sign: `+640 records/min`."""
    if per_second is None:
        return UNKNOWN
    sign = "+" if per_second > 0 else "−" if per_second < 0 else ""
    return f"{sign}{pace(abs(per_second), noun)}"


def pace(per_second: float | None, noun: str = "") -> str:
    """A rate that is not negative, per second, or per minute or hour if it is slow: `50 / s`, `2 / min`."""
    if per_second is None:
        return UNKNOWN
    units = (("s", 1), ("min", 60), ("h", 3_600)) if per_second else (("s", 1),)
    unit, size = next((each for each in units if per_second * each[1] >= 1), units[-1])
    value = per_second * size
    amount = short_count(value) if value >= 10_000 else _three_digits(value)
    return f"{amount} {noun}/{unit}" if noun else f"{amount} / {unit}"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """A number with its noun: `1 member`, `3 members`."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def share(value: float | None) -> str:
    """A share between 0 and 1 as a percentage."""
    return UNKNOWN if value is None else f"{_three_digits(100 * value)} %"


def _three_digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
