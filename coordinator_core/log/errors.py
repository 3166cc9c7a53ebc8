"""Why a log could not be read at all. Damage inside a log that can be read is a value instead: `coordinator_core.log.damage`."""


class LogError(Exception):
    """Root of everything a log source raises."""


class LogNotFound(LogError):
    """The address names no log: no such folder, file or partition."""


class LogUnreadable(LogError):
    """The log is there, and the operating system or its own contents refuse the reading."""


class LogTruncated(LogError):
    """The log ends before an offset that it held when the reading was planned: truncated, recreated or restored."""


class LogMisconfigured(LogError):
    """The address or an option of it means nothing, or contradicts another; nobody was asked yet."""


class LogUnreachable(LogError):
    """No broker answers, or the leader of a partition stayed away for longer than the caller was ready to wait."""


class LogRefused(LogError):
    """The broker answers, and says no with an error that waiting does not cure."""


class AuthenticationFailed(LogRefused):
    """The broker does not believe who we are, or we do not believe who it is (TLS)."""


class NotAuthorized(LogRefused):
    """The broker knows us and does not let us read the topic."""


class TopicMissing(LogNotFound):
    """The cluster has no topic of this name, or the topic no such partition."""


class TopicRecreated(LogTruncated):
    """The topic was deleted and created again: the same name, another log."""


class RecordsDeleted(LogError):
    """The log begins behind the position that was to be read next: what was between is gone."""
