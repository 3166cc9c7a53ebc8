"""Coordinator and job in one process: the job follows the log that the coordinator writes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.node.process import signalled
from pipelines.job import job
from pipelines.job.coordinator_process import CoordinatorOptions, print_ready_line, run_coordinator
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions, trigger_arguments
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress
from pipelines.runtime.stop_request import StopRequest

#: Replaces `available-now`, which would end. Pauses between batches leave CPU time to the coordinator.
_TRIGGER = "1s"


def following(options: RunOptions, coordinator: CoordinatorOptions, trigger: str | None) -> RunOptions:
    """The options of a job that follows this coordinator. `trigger` is the value of `--trigger`, None without that flag.

    Raises UsageError for `--trigger available-now`, another source than `segments:`, or another era than the coordinator's.
    """
    if trigger == AVAILABLE_NOW:
        raise UsageError(
            f"--trigger {AVAILABLE_NOW} would end the job and with it the coordinator: use continuous, or an interval such as 10s"
        )
    if options.address.scheme != "segments":
        raise UsageError(
            f"--source {options.address}: with --with-coordinator the source must be the folder of its log, segments:DIR"
        )
    if options.era.name != coordinator.config.era:
        raise UsageError(
            f"coordinator.era is {coordinator.config.era}, but the era of the tables is {options.era.name}: "
            "set coordinator.era and --era to the same era"
        )
    return replace(
        options,
        trigger=_TRIGGER if options.trigger == AVAILABLE_NOW else options.trigger,
        offsets_partitions=coordinator.config.offsets_topic_num_partitions,
        transactions_partitions=(
            coordinator.transactions.transaction_state_log_num_partitions if coordinator.transactions else 0
        ),
    )


def run_with_coordinator(
    options: RunOptions, coordinator: CoordinatorOptions, progress: Progress, clock_ms: Callable[[], int]
) -> None:
    """Run both until SIGTERM or SIGINT, or until one fails. The job ends first, after the current batch.

    Raises any exception of either.
    """
    trigger_arguments(options.trigger)

    async def until(address: ListenAddress, admin: ListenAddress | None) -> str:
        signal_name = signalled()
        print_ready_line(address, admin)
        return await job_beside(signal_name, options, progress, clock_ms)

    run_coordinator(coordinator, until)


async def job_beside(
    other: Awaitable[str],
    options: RunOptions,
    progress: Progress,
    clock_ms: Callable[[], int],
    on_ready: Callable[[], None] | None = None,
) -> str:
    """Run `other` and, in a thread, the job; when one ends, end the other one. Returns the result of `other`.

    `on_ready` is called in the thread of the event loop when the job is ready (`pipelines.job.job.run`). Raises any exception of
    either.
    """
    stop = StopRequest()
    beside = asyncio.ensure_future(other)
    loop = asyncio.get_running_loop()

    def ready() -> None:
        if on_ready is not None:
            loop.call_soon_threadsafe(on_ready)

    followed = asyncio.create_task(asyncio.to_thread(job.run, options, progress, clock_ms, stop, ready))
    try:
        await asyncio.wait((beside, followed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.request()
        if not beside.done():
            beside.cancel()
    await followed
    return "the job has ended" if beside.cancelled() else await beside
