"""What can happen to a client."""


class ClientError(Exception):
    """A request that got no answer. Trying again may help, with another connection."""


class Disconnected(ClientError):
    """The connection could not be made, or broke, or was closed, before the answer came."""


class TimedOut(ClientError):
    """The answer did not come in time; the connection is closed with that."""


class NoCommonVersion(ClientError):
    """The broker speaks no version of the API that is spoken here. Trying again does not help."""
