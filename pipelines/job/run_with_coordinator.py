"""The coordinator and the job that follows its log, in one process."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from coordinator_core.service.addresses import Address
from coordinator_core.service.process import signalled
from pipelines.coordinator import CoordinatorOptions, run_coordinator, tell_ready
from pipelines.errors import UsageError
from pipelines.job import job
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions, trigger_arguments
from pipelines.job.stopping import Stopping
from pipelines.progress import Progress

#: Where neither command line nor configuration ask for a trigger that goes on: the coordinator keeps its share of the process.
_TRIGGER = "1s"


def following(options: RunOptions, coordinator: CoordinatorOptions, trigger: str | None) -> RunOptions:
    """The options of a job that follows this coordinator. `trigger` is what the command line says, if it says something.

    Raises UsageError for a job that would end by itself, or that reads another log or by other rules than the coordinator's.
    """
    if trigger == AVAILABLE_NOW:
        raise UsageError(
            f"--trigger {AVAILABLE_NOW} ends at once, and the coordinator with it: choose continuous, or an interval such as 10s"
        )
    if options.address.scheme != "segments":
        raise UsageError(f"--source {options.address}: a coordinator of our own writes its log into a folder, segments:DIR")
    if options.era.name != coordinator.config.era:
        raise UsageError(
            f"coordinator.era is {coordinator.config.era}, but the tables are to follow era {options.era.name}: "
            "give both the same"
        )
    return replace(options, trigger=_TRIGGER if options.trigger == AVAILABLE_NOW else options.trigger)


def run_with_coordinator(
    options: RunOptions, coordinator: CoordinatorOptions, progress: Progress, clock_ms: Callable[[], int]
) -> None:
    """Runs both until SIGTERM or SIGINT, or until one fails; the job ends first, after the batch that is being applied.

    Raises what either of them raises.
    """
    trigger_arguments(options.trigger)

    async def until(address: Address, admin: Address | None) -> str:
        signal_name = signalled()
        tell_ready(address, admin)
        return await job_beside(signal_name, options, progress, clock_ms)

    run_coordinator(coordinator, until)


async def job_beside(
    other: Awaitable[str],
    options: RunOptions,
    progress: Progress,
    clock_ms: Callable[[], int],
    on_ready: Callable[[], None] | None = None,
) -> str:
    """Runs the job in a thread until `other` is done, or the other way round. Returns what `other` returns; raises what either
    of them raises. `on_ready` is called in this thread, when the job is (`pipelines.job.job.run`)."""
    stopping = Stopping()
    beside = asyncio.ensure_future(other)
    loop = asyncio.get_running_loop()

    def ready() -> None:
        if on_ready is not None:
            loop.call_soon_threadsafe(on_ready)

    followed = asyncio.create_task(asyncio.to_thread(job.run, options, progress, clock_ms, stopping, ready))
    try:
        await asyncio.wait((beside, followed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.tell()
        if not beside.done():
            beside.cancel()
    await followed
    return "the job has ended" if beside.cancelled() else await beside
