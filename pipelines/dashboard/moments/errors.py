"""Reasons why there is no state to show."""

from pipelines.errors import GrouplakeError


class UnknownCluster(GrouplakeError):
    """The server has no cluster of that name."""


class NotLoaded(GrouplakeError):
    """The state cannot be shown now: nothing is loaded yet, or too much is being loaded. A later request may succeed."""
