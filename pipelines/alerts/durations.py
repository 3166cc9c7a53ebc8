"""Durations as Prometheus writes them, such as `90s`, `5m` or `1h30m`."""

import re

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d|w)")
_SHOWN = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def parse_duration_ms(text: str) -> int:
    """Milliseconds of a duration. Raises ValueError for any other text."""
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError(text)
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))


def duration_text(seconds: float) -> str:
    """A duration in its two largest units, such as `1h30m`."""
    left = round(abs(seconds))
    parts = []
    for unit, size in _SHOWN:
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return ("-" if seconds < 0 else "") + ("".join(parts[:2]) or "0s")
