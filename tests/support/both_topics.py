"""A folder with `__consumer_offsets` and `__transaction_state` in the coordinator's format, one partition each."""

from pathlib import Path
from typing import Any

from appended_logs import NOW_MS, TOPIC, batches_of
from jobs import run_job
from log_builder import Log
from transaction_logs import TransactionLog

from coordinator_core.log.entries import LogRecord
from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.state.transaction_state import EMPTY
from pipelines.source.address import parse_address
from pipelines.source.transaction_log import transaction_address


class BothTopics:
    """Both logs below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"segments:{folder}"

    def append(self, offsets: Log | None = None, transactions: TransactionLog | None = None) -> None:
        """Append the records of these logs."""
        log = SegmentLog.open(self.folder, TOPIC, 1, SegmentLogSettings())
        self._append(log, offsets.records if offsets else [])
        if transactions is not None:
            beside = SegmentLog.open(self.folder, TRANSACTION_STATE_TOPIC, 1, SegmentLogSettings(), is_locked=True)
            self._append(beside, transactions.records)
            beside.close()
        log.close()

    def _append(self, log: SegmentLog, records: list[LogRecord]) -> None:
        if records:
            log.partition(0).append(batches_of(records), NOW_MS)

    def run(self, tables: Path, given: str | None = "source", **changed: Any) -> list[str]:
        address = transaction_address(parse_address(self.address), given, "4") if given else None
        return run_job(self.address, tables, driver_records=100, transactions=address, **changed)


def commits(*values: int, group: str = "ledger") -> Log:
    log = Log()
    for value in values:
        log.commit(0, value, group=group)
    return log


def initialized(*names: str) -> TransactionLog:
    log = TransactionLog()
    for name in names:
        log.state(name, EMPTY, producer_id=ord(name))
    return log
