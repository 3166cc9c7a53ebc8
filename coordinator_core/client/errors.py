"""Errors of a client."""


class ClientError(Exception):
    """A request got no response. Retriable, on another connection."""


class Disconnected(ClientError):
    """The connection could not be opened, or was closed before the response arrived."""


class TimedOut(ClientError):
    """The response did not arrive in time; the connection is closed."""


class NoCommonVersion(ClientError):
    """Broker and client have no version of the API in common. Not retriable."""
