"""A log partition in memory, which tests write record by record."""

from coordinator_core.log.entries import LogRecord


class RecordLog:
    """Records in the order of their offsets; `end` is the offset of the next one."""

    def __init__(self, partition: int = 0) -> None:
        self.records: list[LogRecord] = []
        self.partition = partition

    @property
    def end(self) -> int:
        return self.records[-1].offset + 1 if self.records else 0
