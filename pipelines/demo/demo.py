"""`grouplake demo`: a coordinator, members that come and go, the job that follows, and what its tables say meanwhile."""

import asyncio
import tempfile
import time
from pathlib import Path

from coordinator_core.client import ClientError
from coordinator_core.service.addresses import Address
from coordinator_core.state.era import Era
from pipelines.configuration import load_configuration
from pipelines.coordinator import CoordinatorOptions, coordinator_options, run_coordinator
from pipelines.demo.story import TOPICS, Story
from pipelines.demo.waiting import DemoError
from pipelines.errors import UsageError
from pipelines.job.run_options import RunOptions
from pipelines.job.run_with_coordinator import job_beside
from pipelines.progress import print_progress
from pipelines.source.address import parse_address
from pipelines.tables.store import TableStore

_ERA = "4"
_TRIGGER = "500ms"
#: What takes minutes or days with the defaults is to be seen within seconds.
_IMPATIENT = {
    "group_min_session_timeout_ms": 1_000,
    "group_initial_rebalance_delay_ms": 500,
    "offsets_retention_check_interval_ms": 500,
    "admin_listen": "",
    "topics": TOPICS,
}


def run_demo(tables: str | None) -> None:
    """Runs the demo; the tables go to `tables`, or to a folder of their own. All of it is kept."""
    if tables is not None and TableStore(tables).exists():
        raise UsageError(f"there are tables under {tables} already: the demo begins with an empty folder")
    folder = Path(tempfile.mkdtemp(prefix="grouplake-demo-"))
    tables, log = tables or str(folder / "tables"), folder / "log"
    print_progress(f"coordinator and job start; tables: {tables}, logs: {folder}/*.log")
    with (folder / "coordinator.log").open("w") as events, (folder / "job.log").open("w", buffering=1) as told:

        def progress(line: str) -> None:
            told.write(f"{line}\n")
            if not line.startswith("batch "):
                print_progress(line)

        async def until(address: Address, _admin: Address | None) -> str:
            print_progress(f"the coordinator listens on {address}")
            ready = asyncio.Event()
            story = _told(Story(address, str(log), tables, str(folder)), ready)
            return await job_beside(story, _job_options(log, tables), progress, _now_ms, ready.set)

        run_coordinator(_coordinator_options(log), until, events)
    print(f"\nThe tables are in {tables}, the log that they were made from in {log}:")
    print(f'  grouplake sql --tables {tables} "SELECT * FROM group_history"')
    print(f"  grouplake show --source segments:{log}")


async def _told(story: Story, ready: asyncio.Event) -> str:
    """Begins when the job is ready, so that downloads and compilation end no session of a member."""
    await ready.wait()
    try:
        await story.tell()
    except ClientError as error:
        raise DemoError(str(error)) from error
    return "the story is told"


def _coordinator_options(log: Path) -> CoordinatorOptions:
    return coordinator_options("127.0.0.1:0", str(log), {**load_configuration(None).coordinator, **_IMPATIENT})


def _job_options(log: Path, tables: str) -> RunOptions:
    configuration = load_configuration(None)
    era = Era.named(_ERA)
    return RunOptions(
        address=parse_address(f"segments:{log}"),
        tables=tables,
        era=era,
        retention_ms=era.default_retention_ms,
        trigger=_TRIGGER,
        expiry="observe",
        now_ms=None,
        bulk_rows=configuration.job["bulk_rows"],
        max_records=0,
        tasks=0,
        spark=configuration.spark,
        kafka={},
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
