"""Errors in responses, for the metrics."""

from collections.abc import Sequence

from coordinator_core.protocol.api import AnyApi, Response
from coordinator_core.protocol.error_code import ErrorCode


def response_errors(api: AnyApi, responses: Sequence[Response]) -> list[str]:
    """Return Kafka's names of all errors in the parts of a response, at every depth."""
    return [error.name for response in responses for error in api.errors(response) if error is not ErrorCode.NONE]
