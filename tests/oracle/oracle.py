"""`make oracle`: random logs, loaded by real brokers of every generation and by us; exit code 1 if the answers differ."""

import argparse
import sys
import time
from collections.abc import Sequence

from generations import GENERATIONS
from trial import SEEDS_PER_ROUND, Mode, RoundResult, Trial

from coordinator_core.codec import Record, decode
from coordinator_core.codec.text import json_form
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.record_batch import control_type

_SHOWN_DIFFERENCES = 20
_MODES = {"loaded": Mode.LOADED, "swept": Mode.SWEPT}


def main(arguments: Sequence[str]) -> int:
    """Run seeds `first` to `first + seeds - 1`; return the exit code."""
    options = _parser().parse_args(arguments)
    started = time.monotonic()
    broken = False
    for version in options.generation or GENERATIONS:
        for mode in options.mode or _MODES:
            broken |= _run(version, _MODES[mode], range(options.first, options.first + options.seeds), options.group)
    print(f"{options.seeds} seeds in {time.monotonic() - started:.0f} s: {'differences' if broken else 'no difference'}")
    return int(broken)


def _run(version: str, mode: Mode, seeds: range, only: str | None) -> bool:
    started = time.monotonic()
    groups = differing = 0
    with Trial(GENERATIONS[version], mode) as trial:
        for start in range(0, len(seeds), SEEDS_PER_ROUND):
            some = seeds[start : start + SEEDS_PER_ROUND]
            result = trial.round(some, only=only)
            groups += result.groups
            differing += len({each.group for each in result.differences})
            took = time.monotonic() - started
            summary = f"{groups} groups, {differing} differ, {took:.0f} s"
            print(f"Kafka {version} {mode.value}: seeds {some[0]}–{some[-1]}: {summary}", flush=True)
            show(result)
    return differing > 0


def show(result: RoundResult) -> None:
    """Print the differences, each group's followed by its records."""
    shown: set[str] = set()
    for each in result.differences[:_SHOWN_DIFFERENCES]:
        print(f"  {each}")
        if each.group not in shown:
            shown.add(each.group)
            for record in result.records.get(each.group, ()):
                print(f"    {_line(record)}")
    if len(result.differences) > _SHOWN_DIFFERENCES:
        print(f"  and {len(result.differences) - _SHOWN_DIFFERENCES} more")
    sys.stdout.flush()


def _line(record: LogRecord) -> str:
    position = f"{record.partition}-{record.offset}"
    idempotent = "" if record.is_transactional else " idempotent"
    producer = "" if record.producer_id == -1 else f" producer {record.producer_id}{idempotent}"
    if record.is_control:
        return f"{position}{producer} {'COMMIT' if control_type(record.key) else 'ABORT'}"
    decoded = decode(record.key, record.value)
    return f"{position}{producer} {json_form(decoded) if isinstance(decoded, Record) else decoded}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="oracle", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: 1)")
    parser.add_argument("--generation", action="append", choices=list(GENERATIONS), help="only these brokers")
    parser.add_argument("--mode", action="append", choices=list(_MODES), help="only as loaded, or only after the sweep")
    parser.add_argument("--group", help="only the story of this group")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
