"""Reasons why there is no state to show."""

from pipelines.runtime.errors import GrouplakeError, UsageError


class UnknownCluster(GrouplakeError):
    """The server has no cluster of that name."""


class InvalidRequest(UsageError):
    """A value of the request is not accepted. The message has the value and the bound, and no name of the server's own."""


class NotLoaded(GrouplakeError):
    """The state cannot be shown now: nothing is loaded yet, or too much is being loaded. A later request may succeed."""


class NoBatch(NotLoaded):
    """No batch of the cluster is loaded, or there is none yet."""
