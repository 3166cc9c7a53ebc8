"""Errors of logs that cannot be read. Damage inside a readable log is a value: `coordinator_core.log.damage`."""


class LogError(Exception):
    """Base of the errors that a log source raises."""


class LogNotFound(LogError):
    """The folder, file or partition of the address does not exist."""


class LogUnreadable(LogError):
    """The log exists, but the operating system or its contents prevent reading."""


class LogTruncated(LogError):
    """The log ends before an offset that it had earlier: it was truncated, recreated or restored."""


class LogMisconfigured(LogError):
    """The address or an option of it is invalid or contradicts another; raised before any request."""


class LogUnreachable(LogError):
    """No broker answers, or a partition had no leader for longer than the caller's timeout."""


class RequestRejected(LogError):
    """The broker answered with an error that a retry does not resolve."""


class AuthenticationFailed(RequestRejected):
    """The broker rejected the client's credentials, or the client rejected the broker's certificate (TLS)."""


class NotAuthorized(RequestRejected):
    """The authenticated client may not read the topic."""


class TopicMissing(LogNotFound):
    """The cluster has no topic of this name, or the topic has no such partition."""


class TopicRecreated(LogTruncated):
    """The topic was deleted and created again: same name, different log."""


class RecordsDeleted(LogError):
    """The log now starts after the offset to read next; the records in between were deleted."""
