"""The process of one query: it reads a request from standard input, and writes one JSON object to standard output.

The limits are set after the imports, before the tables are opened. Memory beyond the limit ends the process: DataFusion cannot
continue after a failed allocation.
"""

import json
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pipelines.query.arrow_types import distinct_names
from pipelines.query.column_types import type_name
from pipelines.query.engine import Snapshot
from pipelines.query.output import json_rows
from pipelines.runtime.errors import GrouplakeError

#: Bytes of the rows as JSON; the values of 10,000 rows may have any size.
_MOST_BYTES = 16 << 20
_PAGE_BYTES = resource.getpagesize()


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    _limit(request["seconds"], request["memory_mb"])
    try:
        snapshot = Snapshot.open(request["root"], request["as_of"])
        answer = _answer(snapshot, request["sql"], request["rows"])
    except GrouplakeError as error:
        answer = {"error": str(error)}
    except (MemoryError, pa.ArrowMemoryError):
        answer = {"error": None, "is_out_of_memory": True}
    json.dump(answer, sys.stdout, ensure_ascii=True, allow_nan=False)


def _limit(seconds: int, memory_mb: int) -> None:
    """Limit this process. The server ends it after `seconds`; the limit of CPU time is for a dead server."""
    cores = os.cpu_count() or 1
    for kind, value in (
        (resource.RLIMIT_AS, _size() + (memory_mb << 20)),
        (resource.RLIMIT_CPU, seconds * cores + 1),
        # no file is written, a core dump neither
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _size() -> int:
    """Address space of this process without a query."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[0]) * _PAGE_BYTES
    except OSError:
        # a system without /proc does not enforce the limit either
        return 1 << 30


def _answer(snapshot: Snapshot, sql: str, most_rows: int) -> dict[str, Any]:
    schema, batches = snapshot.stream(sql)
    rows: list[list[Any]] = []
    size = 0
    cut = None
    for row in _rows(batches):
        size += len(json.dumps(row))
        if len(rows) == most_rows:
            cut = f"only the first {most_rows:,} rows (dashboard.sql_rows)"
            break
        if size > _MOST_BYTES:
            cut = f"only the first {len(rows):,} rows: the answer has at most {_MOST_BYTES >> 20} MiB"
            break
        rows.append(row)
    columns = [
        {"name": name, "type": type_name(each.type)} for name, each in zip(distinct_names(schema.names), schema, strict=True)
    ]
    return {"batch_id": snapshot.batch.batch_id, "columns": columns, "rows": rows, "note": cut}


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Any]]:
    for batch in batches:
        yield from map(list, json_rows(pa.Table.from_batches([batch])))


if __name__ == "__main__":
    main()
