"""The end of a run that hangs: a store, a disk or a cluster that never answers must not block all later runs of a schedule."""

from pipelines.runtime.progress import Progress
from pipelines.runtime.watchdog import Watchdog, end_process


def hung_run_watchdog(limit_seconds: int, progress: Progress) -> Watchdog:
    """A watchdog that ends this process with exit code 1 after `job.hung_seconds` without progress; 0 for no limit."""

    def end(last: str) -> None:
        progress(
            f"no progress for {limit_seconds:,} s: this run hangs and ends. The next one continues after the last batch. "
            f"Last line: {last or 'none'}"
        )
        end_process()

    return Watchdog(limit_seconds, end)
