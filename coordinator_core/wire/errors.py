"""Errors of reading and writing messages of the Kafka protocol."""

from coordinator_core.protocol.api import RequestHeader


class WireError(Exception):
    """A message cannot be read or written. `header` is set if it could be read."""

    def __init__(self, problem: str, header: RequestHeader | None = None) -> None:
        super().__init__(problem)
        self.header = header


class MalformedMessage(WireError):
    """The bytes are not a message of this API and version; `position` is the byte of the frame at which reading failed."""

    def __init__(self, problem: str, position: int, header: RequestHeader | None = None) -> None:
        super().__init__(f"byte {position}: {problem}", header)
        self.position = position


class UnknownApi(WireError):
    """The API is not served."""


class UnsupportedVersion(WireError):
    """The API is served, but not in this version. For ApiVersions, `write_error_response` makes a response."""


class Unwritable(WireError):
    """The version of the message cannot express its content, such as several groups, or a string above 32767 bytes."""
