"""Result of a check."""

from dataclasses import dataclass
from enum import StrEnum

from coordinator_core.log.errors import AuthenticationFailed, LogMisconfigured, LogUnreachable, RecordsDeleted
from pipelines.runtime.errors import ForeignFeature, TablesError


class Severity(StrEnum):
    """Weight of a finding. A problem stops the job or makes its results wrong; a warning limits what it can show."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class CheckResult:
    """The result of a check, and what to do about it; `remedy` is empty for an OK."""

    mark: Severity
    found: str
    remedy: str = ""


def ok(found: str) -> CheckResult:
    """Everything is as it should be."""
    return CheckResult(Severity.OK, found)


def warning(found: str, remedy: str) -> CheckResult:
    """The job runs, with a limit."""
    return CheckResult(Severity.WARNING, found, remedy)


def problem(found: str, remedy: str) -> CheckResult:
    """The job does not run, or not correctly."""
    return CheckResult(Severity.PROBLEM, found, remedy)


#: Errors that checks end with, and what to do about them; the first match counts.
_REMEDIES: tuple[tuple[type[Exception], str], ...] = (
    (LogMisconfigured, "correct the address, or the section [kafka] of the configuration (docs/sources.md#security)"),
    (AuthenticationFailed, "check user, password or token, ssl_cafile and sasl_mechanism in the section [kafka]"),
    (LogUnreachable, "check host and port, firewalls, security_protocol, and that the broker runs"),
    (RecordsDeleted, "start over with an empty folder of tables, or restore the log"),
    (ForeignFeature, "run the command in this line (docs/operations.md#features-that-cannot-be-read)"),
    (TablesError, "see docs/operations.md#error-messages"),
    (Exception, "correct the option, file or address that the message names"),
)


def failed(error: Exception) -> CheckResult:
    """A check that ended with an error of the code that the job uses too."""
    return problem(str(error), remedy_for(error))


def remedy_for(error: Exception) -> str:
    """Return what to do about an error."""
    return next(remedy for kind, remedy in _REMEDIES if isinstance(error, kind))
