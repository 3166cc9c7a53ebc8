"""Checks of an object store: address, credentials and access."""

from collections.abc import Iterator

from pipelines.doctor.finding import CheckResult, ok, problem
from pipelines.doctor.subject import Subject
from pipelines.runtime.errors import GrouplakeError
from pipelines.tables.conditional_writes import expect_conditional_writes
from pipelines.tables.object_stores import reason_of

_REMEDY = "check the address, the credentials and the endpoint in the environment (AWS_…, AZURE_…, GOOGLE_…), and the network"


def access(subject: Subject) -> Iterator[CheckResult]:
    """Read the newest version of `batches`, with the credentials that the job would use."""
    try:
        has_tables = subject.store.exists()
        batch = subject.last
    except GrouplakeError as error:
        yield problem(str(error), _REMEDY)
    except Exception as error:  # object_store's errors reach Python as OSError, ValueError and others
        yield problem(f"{subject.tables} cannot be read: {reason_of(error)}", _REMEDY)
    else:
        found = f"batch {batch.batch_id}" if batch else "tables without a batch" if has_tables else "no tables yet"
        yield ok(f"{subject.tables} answers: {found}")


def conditional_writes(subject: Subject) -> Iterator[CheckResult]:
    """The probe with which a run begins: a second write under the condition that the object does not exist."""
    assert subject.tables is not None
    expect_conditional_writes(subject.tables)
    yield ok("the store is writable, and its conditional writes exclude a second writer")
