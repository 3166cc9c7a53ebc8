"""`grouplake maintain`: maintains the tables, or requests that from the job that is writing them."""

from collections.abc import Callable
from datetime import datetime

from pipelines.runtime.errors import AnotherWriter, TablesError
from pipelines.runtime.progress import Progress
from pipelines.tables.store import TableStore
from pipelines.tables.writer_lock import lock_holder, writer_lock
from pipelines.upkeep.maintain import Maintenance, maintain_locked
from pipelines.upkeep.requests import DONE, MaintenanceAnswer, RequestFiles, wait_for_answer

#: The command that answers requests.
_JOB = "grouplake run"

#: Time in which a job accepts a request. It starts for up to 20 s, and waits for brokers before a sample.
ACCEPT_SECONDS = 120.0

#: The same where no lock shows whether a job is running: a job looks every five seconds.
ACCEPT_WITHOUT_LOCK_SECONDS = 15.0

#: Jobs that may end, each before it accepts the request.
_ATTEMPTS = 5


def maintain_beside_job(root: str, limits: Maintenance, clock: Callable[[], datetime], progress: Progress) -> None:
    """Maintain the tables, or wait until the job that is writing them has done so.

    Raises:
        UsageError: there are no tables, or they are not writable.
        AnotherWriter: another command is writing them, or the job did not answer.
        TablesError: the maintenance by the job failed.
    """
    TableStore(root).table("batches")
    for _ in range(_ATTEMPTS):
        try:
            with writer_lock(root, "grouplake maintain") as is_locked:
                answer = None if is_locked else _requested_without_lock(root, limits, progress)
                if answer is None:
                    maintain_locked(root, limits, clock(), progress)
                    return
        except AnotherWriter as error:
            answer = _requested(root, limits, error, progress)
        if answer is not None:
            _report(answer, progress)
            return
    raise AnotherWriter(
        f"{_ATTEMPTS} jobs on the tables under {root} ended before they were maintained: stop the jobs and run again"
    )


def _requested(root: str, limits: Maintenance, refused: AnotherWriter, progress: Progress) -> MaintenanceAnswer | None:
    """The answer of the job that has the lock; None if it has ended."""
    holder = lock_holder(root)
    if holder is None:
        return None
    command, _, process = holder.partition("\n")
    if command != _JOB:
        raise refused
    progress(f"`{command}` ({process}) is writing the tables: waiting for its maintenance")
    files = RequestFiles(root)
    answer = wait_for_answer(files, files.make(limits), ACCEPT_SECONDS, lambda: lock_holder(root) != holder)
    if answer is None and lock_holder(root) == holder:
        raise AnotherWriter(
            f"{refused}, and it accepted no request for maintenance within {ACCEPT_SECONDS:.0f} s, because it waits for brokers "
            "or is of an older version: stop it and run `grouplake maintain` again"
        )
    return answer


def _requested_without_lock(root: str, limits: Maintenance, progress: Progress) -> MaintenanceAnswer | None:
    """The answer of a job on storage without locks; None if no job accepts the request, so that none is running."""
    progress(f"waiting up to {ACCEPT_WITHOUT_LOCK_SECONDS:.0f} s for a job that is writing the tables")
    files = RequestFiles(root)
    return wait_for_answer(files, files.make(limits), ACCEPT_WITHOUT_LOCK_SECONDS, lambda: False)


def _report(answer: MaintenanceAnswer, progress: Progress) -> None:
    if answer.state != DONE:
        raise TablesError(f"the maintenance by the job failed: {'; '.join(answer.lines)}")
    for line in answer.lines:
        progress(line)
