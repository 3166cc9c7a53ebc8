"""Duration of `grouplake sql` on many offsets: whole processes started by a shell, with the tables in the page cache."""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import cache_folder, counts, short
from benchmarks.large_tables import CLASSIC_EVERY, TablesShape, group_name, large_tables
from benchmarks.report import print_machine, print_table
from pipelines.tables.store import TableStore

_COMMAND = Path(sys.executable).parent / "grouplake"

#: Question → SQL; `{group}` stands for the group of the question.
QUERIES = {
    "one group, offsets": "SELECT topic, partition, committed_offset FROM offsets WHERE group_id = '{group}'",
    "one group, committed_offsets": "SELECT topic, partition, committed_offset FROM committed_offsets WHERE group_id = '{group}'",
    "one group, expiring_offsets": "SELECT topic, partition, expires_at FROM expiring_offsets WHERE group_id = '{group}'",
    "one group, its history": "SELECT change, committed_offset, commit_timestamp FROM offset_history WHERE group_id = '{group}'",
    "one group, assignments": "SELECT client_id, topic, partition FROM assignments WHERE group_id = '{group}'",
    "100 oldest commits, offsets": (
        "SELECT group_id, topic, partition, commit_timestamp FROM offsets ORDER BY commit_timestamp LIMIT 100"
    ),
    "100 oldest commits, committed_offsets": (
        "SELECT group_id, topic, partition, commit_timestamp FROM committed_offsets ORDER BY commit_timestamp LIMIT 100"
    ),
    "100 that expire first": "SELECT group_id, topic, partition, expires_at FROM expiring_offsets ORDER BY expires_at LIMIT 100",
    "groups by state": "SELECT group_type, state, count(*) AS n FROM groups GROUP BY group_type, state",
    "nothing": "SELECT 1",
}


def seconds(tables: str, sql: str) -> tuple[float, float]:
    """Wall-clock and CPU seconds of one process."""
    # as in a user's shell, Python may write compiled modules
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, started = os.times(), time.monotonic()
    subprocess.run([_COMMAND, "sql", "--tables", tables, sql], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - started, cpu


def queried_group(shape: TablesShape) -> str:
    """Name of a group with members, for the queries."""
    return group_name(shape.groups // 2 // CLASSIC_EVERY * CLASSIC_EVERY)


def rows(store: TableStore, shape: TablesShape, rounds: int) -> list[list[object]]:
    """Medians, one row per question."""
    group = queried_group(shape)
    found: list[list[object]] = []
    for question, sql in QUERIES.items():
        query = sql.format(group=group)
        seconds(store.root, query)
        times = [seconds(store.root, query) for _ in range(rounds)]
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        found.append([short(shape.offsets), question, f"{wall:.2f}", f"{max(w for w, _ in times):.2f}", f"{cpu:.2f}"])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offsets", "--records", type=counts, default=counts("1M,10M"), help="offsets in the tables")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions, of which the median counts")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated tables")
    options = parser.parse_args(arguments)
    print_machine()
    found = [
        row for size in options.offsets for row in rows(large_tables(size, options.cache), TablesShape(size), options.rounds)
    ]
    print_table(["offsets", "question", "median s", "worst s", "CPU s"], found)


if __name__ == "__main__":
    main()
