"""Why a log could not be read at all. Damage inside a log that can be read is a value instead: `coordinator_core.log.damage`."""


class LogError(Exception):
    """Root of everything a log source raises."""


class LogNotFound(LogError):
    """The address names no log: no such folder, file or partition."""


class LogUnreadable(LogError):
    """The log is there, and the operating system or its own contents refuse the reading."""


class LogTruncated(LogError):
    """The log ends before an offset that it held when the reading was planned: truncated, recreated or restored."""
