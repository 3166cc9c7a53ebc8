"""`grouplake cache`: list or remove entries of the cache."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from pipelines.cli.command import Command
from pipelines.runtime.cache.folder import ALL
from pipelines.runtime.errors import UsageError

_EXAMPLES = """examples:
  grouplake cache
  grouplake cache --clear
  grouplake cache --clear classes

kinds: jars     of Delta, of Spark's Kafka connector and of Kafka
       ivy      dependency metadata of the jars, in Ivy's format
       classes  class data archives (CDS) of Spark's JVM
       kernels  functions compiled by Numba
       storage  formatted storage of private Kafka brokers

Everything here is recreated when needed. Entries that a running process uses are kept.
The folder is ~/.cache/grouplake, or $GROUPLAKE_CACHE.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--clear", nargs="?", const=ALL, metavar="KIND", help="remove all entries, or those of one kind")


def _run(options: Namespace) -> int:
    import pyarrow as pa

    from pipelines.query.output import to_stdout
    from pipelines.runtime.cache.folder import KINDS, cache_root, entries, remove

    found = list(entries())
    if options.clear is None:
        rows = {
            "kind": [entry.kind for entry in found],
            "name": [entry.name for entry in found],
            "mb": [f"{entry.bytes / 1e6:,.1f}" for entry in found],
            "last_used": [datetime.fromtimestamp(entry.last_used, UTC).isoformat(timespec="seconds") for entry in found],
        }
        to_stdout(pa.table({name: pa.array(values, pa.string()) for name, values in rows.items()}), "table")
        print(f"{sum(entry.bytes for entry in found) / 1e6:,.1f} MB in {cache_root()}")
        return 0
    kinds = {entry.kind for entry in found}
    if options.clear not in {ALL, *KINDS, *kinds}:
        raise UsageError(
            f"--clear {options.clear}: no such kind: use {', '.join(sorted({*KINDS, *kinds}))}, or no kind to remove all"
        )
    for entry in found:
        if options.clear in (ALL, entry.kind):
            is_removed = remove(entry.path)
            print(f"{'removed' if is_removed else 'in use, kept'}: {entry.kind}/{entry.name}, {entry.bytes / 1e6:,.1f} MB")
    return 0


COMMAND = Command(
    "cache", "list or clear the cache of downloaded and compiled files", _EXAMPLES, _add_arguments, _run, compiles=False
)
