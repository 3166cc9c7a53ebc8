"""Durations: those that people write in settings, such as `90s` or `1h30m`, and those in texts, such as `5 d 3 h`."""

import re

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
#: Nine digits of any unit are within 64 bits.
_PART = re.compile(r"([0-9]{1,9})(ms|s|m|h|d|w)")
#: The years of the tables; texts have no longer duration.
LONGEST_SECONDS = 9_999 * 366 * 86_400
_SHORT_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def parse_duration_ms(text: str) -> int:
    """Milliseconds of a duration as Prometheus writes it. Raises ValueError for any other text."""
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError(text)
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))


def duration_text(seconds: float) -> str:
    """A duration as Prometheus writes it, in its two largest units, such as `1h30m`."""
    left = round(min(abs(seconds), LONGEST_SECONDS))
    parts = []
    for unit, size in _SHORT_UNITS:
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return ("-" if seconds < 0 else "") + ("".join(parts[:2]) or "0s")


def duration(seconds: float) -> str:
    """A duration for a sentence, in its two largest units, such as `5 d 3 h`, `12 min 4 s` or `0 s`."""
    left = int(min(seconds, LONGEST_SECONDS))
    first = next((k for k, (_, size) in enumerate(_UNITS) if left >= size), len(_UNITS) - 1)
    parts: list[str] = []
    for name, size in _UNITS[first : first + 2]:
        count, left = divmod(left, size)
        if count or not parts:
            parts.append(f"{count} {name}")
    return " ".join(parts)
