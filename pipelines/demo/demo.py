"""`grouplake demo`: a coordinator, members that join and leave, the job on its log, and queries of the tables."""

import asyncio
import tempfile
from pathlib import Path

from coordinator_core.client import ClientError
from coordinator_core.service.addresses import Endpoint
from coordinator_core.state.era import Era
from pipelines.configuration import load_configuration
from pipelines.coordinator import CoordinatorOptions, coordinator_options, run_coordinator
from pipelines.demo.steps import TOPICS, DemoSteps
from pipelines.demo.waiting import DemoError
from pipelines.errors import UsageError
from pipelines.job.run_options import RunOptions
from pipelines.job.run_with_coordinator import job_beside
from pipelines.progress import print_progress
from pipelines.source.address import parse_address
from pipelines.tables.store import TableStore
from pipelines.timestamps import now_ms

_ERA = "4"
_TRIGGER = "500ms"
#: Short intervals, so that changes that take minutes or days with the defaults happen within seconds.
_SHORT_INTERVALS = {
    "group_min_session_timeout_ms": 1_000,
    "group_initial_rebalance_delay_ms": 500,
    "offsets_retention_check_interval_ms": 500,
    "admin_listen": "",
    "topics": TOPICS,
}


def run_demo(tables: str | None) -> None:
    """Run the demo, with its tables in `tables` or else in a new temporary folder. Tables, log and logs are kept."""
    if tables is not None and TableStore(tables).exists():
        raise UsageError(f"there are tables under {tables} already: name a new or empty folder")
    folder = Path(tempfile.mkdtemp(prefix="grouplake-demo-"))
    tables, log = tables or str(folder / "tables"), folder / "log"
    print_progress(f"starting coordinator and job; tables: {tables}, logs: {folder}/*.log")
    with (folder / "coordinator.log").open("w") as events, (folder / "job.log").open("w", buffering=1) as job_log:

        def progress(line: str) -> None:
            job_log.write(f"{line}\n")
            if not line.startswith("batch "):
                print_progress(line)

        async def until(address: Endpoint, _admin: Endpoint | None) -> str:
            print_progress(f"coordinator listening on {address}")
            ready = asyncio.Event()
            steps = _run_steps(DemoSteps(address, str(log), tables, str(folder)), ready)
            return await job_beside(steps, _job_options(log, tables), progress, now_ms, ready.set)

        run_coordinator(_coordinator_options(log), until, events)
    print(f"\nThe tables are in {tables}, their log is in {log}:")
    print(f'  grouplake sql --tables {tables} "SELECT * FROM group_history"')
    print(f"  grouplake show --source segments:{log}")


async def _run_steps(steps: DemoSteps, ready: asyncio.Event) -> str:
    """Run the steps once the job is ready: downloads and compilation must not delay heartbeats past a session timeout."""
    await ready.wait()
    try:
        await steps.run()
    except ClientError as error:
        raise DemoError(str(error)) from error
    return "the demo is complete"


def _coordinator_options(log: Path) -> CoordinatorOptions:
    return coordinator_options("127.0.0.1:0", str(log), {**load_configuration(None).coordinator, **_SHORT_INTERVALS})


def _job_options(log: Path, tables: str) -> RunOptions:
    configuration = load_configuration(None)
    era = Era.named(_ERA)
    return RunOptions(
        address=parse_address(f"segments:{log}"),
        tables=tables,
        era=era,
        retention_ms=era.default_retention_ms,
        bulk_rows=configuration.job["bulk_rows"],
        spark=configuration.spark,
        trigger=_TRIGGER,
    )
