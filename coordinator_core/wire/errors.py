"""What is wrong with bytes that were to be a message of the Kafka protocol."""

from coordinator_core.wire.header import RequestHeader


class WireError(Exception):
    """A message that cannot be read or written. `header` is there once it could be read."""

    def __init__(self, problem: str, header: RequestHeader | None = None) -> None:
        super().__init__(problem)
        self.header = header


class Malformed(WireError):
    """Bytes that are no message of this API and version; `position` says where in the frame reading ended."""

    def __init__(self, problem: str, position: int, header: RequestHeader | None = None) -> None:
        super().__init__(f"byte {position}: {problem}", header)
        self.position = position


class UnknownApi(WireError):
    """An API that is not served."""


class UnsupportedVersion(WireError):
    """A version of a served API that is not served. ApiVersions has an answer for that: `write_refusal`."""


class Unwritable(WireError):
    """A message that the bytes of its version have no room for: more groups than one, a text above 32767 bytes."""
