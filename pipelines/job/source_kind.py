"""Whether a folder of tables is made from a log or from polls: their positions have nothing in common."""

from pipelines.job.run_options import RunOptions
from pipelines.query.poll_times import is_polled
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import Batch

#: Sources of one cluster between which a folder may change: its topic of offsets, and polls of its coordinators.
_CHANGEABLE = ("kafka", "kafka-groups")


def is_source_change(options: RunOptions, last: Batch | None) -> bool:
    """True for a run that reads another kind of source than batch `last`, which `source_change` allows.

    Raises:
        UsageError: the source is of another kind, and this is not allowed.
    """
    address = options.address
    if last is None or is_polled(last) == address.is_polled:
        return False
    found = (
        f"the tables under {options.tables} were made from {_kind(is_polled(last))}, and {address} is {_kind(address.is_polled)}"
    )
    if address.scheme not in _CHANGEABLE:
        raise UsageError(f"{found}: use another folder")
    if not options.source_change:
        raise UsageError(f"{found}: use another folder, or --source-change for the same cluster")
    if last.transaction_offsets is not None and options.transactions is None:
        raise UsageError(f"{found}; the tables have transactions, which change their source too: add --transactions")
    return True


def _kind(polled: bool) -> str:
    return "polls (kafka-groups://)" if polled else "a log"
