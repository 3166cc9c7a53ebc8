"""Why an export failed. The exporters return no reason, they log one, with addresses that may have a secret in their path."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from http import HTTPStatus

#: Name of the parent of all loggers of OpenTelemetry.
_LOGGER = "opentelemetry"
_PHRASES = {status.phrase: int(status) for status in HTTPStatus}


class FailureReasons(logging.Handler):
    """Keeps the reason of the last failure, without any text of the log: a status, a system error, or the type of an error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._reason: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason that is among the arguments of a record."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        found = next((reason for each in arguments if (reason := _reason_of(each))), None)
        self._reason = found or self._reason

    def take(self) -> str:
        """Return the reason, and forget it."""
        reason, self._reason = self._reason, None
        return reason or "reason unknown"


@contextmanager
def failure_reasons() -> Iterator[FailureReasons]:
    """The reasons of exports that fail meanwhile. Nothing of OpenTelemetry is logged: it would repeat with every attempt."""
    handler = FailureReasons()
    logger = logging.getLogger(_LOGGER)
    before = logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate = before[0]
        logger.setLevel(before[1])


def _reason_of(argument: object) -> str | None:
    if isinstance(argument, BaseException):
        return reason_of_error(argument)
    if isinstance(argument, str):
        code = _PHRASES.get(argument)
        return None if code is None else f"HTTP {code}"
    if isinstance(argument, Enum):
        # a status of gRPC
        return argument.name
    if isinstance(argument, int) and not isinstance(argument, bool) and 100 <= argument < 600:
        return f"HTTP {argument}"
    return None


def reason_of_error(error: BaseException) -> str:
    """The system's words for the innermost error that has some, otherwise the type of the error."""
    seen: set[int] = set()
    found, each = type(error).__name__, error
    while id(each) not in seen:
        seen.add(id(each))
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
        inner = each.__cause__ or each.__context__ or next((arg for arg in each.args if isinstance(arg, BaseException)), None)
        if inner is None:
            break
        each = inner
    return found
