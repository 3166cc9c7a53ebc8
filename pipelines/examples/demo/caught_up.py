"""Waiting for the tables of a job that follows a log."""

import asyncio
from collections.abc import Mapping
from contextlib import closing

from pipelines.examples.demo.waiting import WaitProgress, wait_for
from pipelines.source.address import SourceAddress, open_source
from pipelines.source.ranges import new_offsets
from pipelines.tables.store import TableStore

OBSERVE_EVERY_SECONDS = 0.1


async def caught_up(tables: str, log: SourceAddress, options: Mapping[str, str], logs: str) -> None:
    """Wait until the tables have everything that is in the log now. `options` are those of its connection.

    Raises DemoError, which names job.log in the folder `logs`, if the tables make no progress.
    """

    def log_ends() -> dict[int, int]:
        with closing(open_source(log, options)) as source:
            return source.end_offsets()

    ends = await asyncio.to_thread(log_ends)

    async def observe() -> WaitProgress:
        return await asyncio.to_thread(_progress_to, ends, tables)

    await wait_for("the tables did not catch up with the log", observe, OBSERVE_EVERY_SECONDS, f"; see {logs}/job.log")


def _progress_to(ends: dict[int, int], tables: str) -> WaitProgress:
    store = TableStore(tables)
    last = store.last_batch() if store.exists() else None
    reached = {} if last is None else last.next_offsets
    behind = new_offsets(reached, ends)
    batch = "no batch yet" if last is None else f"last batch: {last.batch_id}"
    is_done = last is not None and behind == 0
    return WaitProgress(is_done, sum(reached.values()), f"{batch}, {behind:,} records behind")
