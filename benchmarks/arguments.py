"""Arguments that the benchmarks share."""

import argparse
import os
import re
from pathlib import Path

_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


def count(text: str) -> int:
    """`2M`, `200k` or `5000` as a number."""
    found = re.fullmatch(r"(\d+)([kM]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"invalid count {text!r}: use a number such as 5000, 200k or 10M")
    return int(found[1]) * _UNITS[found[2]]


def counts(text: str) -> tuple[int, ...]:
    """`2M,10M` as numbers."""
    return tuple(count(part) for part in text.split(","))


def short(number: int) -> str:
    """The inverse of `count`: `2M`, `200k`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


def cache_folder() -> Path:
    """Folder of generated logs: `$GROUPLAKE_CACHE/benchmarks`, by default `~/.cache/grouplake/benchmarks`."""
    root = os.environ.get("GROUPLAKE_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "grouplake") / "benchmarks"


def parser(description: str | None, *, records: str, keys: str, rounds: int) -> argparse.ArgumentParser:
    """A parser with the shared arguments and their defaults."""
    made = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    made.add_argument("--records", type=counts, default=counts(records), help=f"records of the logs (default {records})")
    made.add_argument("--keys", type=count, default=count(keys), help=f"distinct keys in each (default {keys})")
    made.add_argument("--rounds", type=int, default=rounds, help=f"repetitions, of which the best counts (default {rounds})")
    made.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated logs")
    return made
