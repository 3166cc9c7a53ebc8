"""Checks of a source that is polled: one poll of groups and one of transactions, as the job makes them."""

from collections.abc import Iterator

from coordinator_core.group_polls.group_poller import GroupPoller
from coordinator_core.group_polls.transaction_poller import TransactionPoller
from coordinator_core.log.errors import AuthenticationFailed, RequestRejected
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from pipelines.doctor.finding import CheckResult, ok, problem, warning
from pipelines.doctor.subject import Subject

#: Groups or ids with an error that are named.
_EXAMPLES = 3
_ACLS = "kafka-acls --add --allow-principal User:… --operation Describe --cluster, or --group '*', and --topic '*'"
_TRANSACTION_ACLS = "kafka-acls --add --allow-principal User:… --operation Describe --transactional-id '*' --topic '*'"


def poll(subject: Subject) -> Iterator[CheckResult]:
    """The groups that the user may describe, and those whose coordinator answers with an error."""
    assert subject.address is not None
    with borrowed_connection(parse_address(subject.address.kafka_address).servers, subject.kafka) as connection:
        found = GroupPoller(connection, subject.clock_ms).poll({})
    for name, reason in sorted(found.silent.items()):
        yield problem(f"broker {name} does not answer: {reason}", "its groups would stay as they are; start the broker")
    if found.failures:
        named = ", ".join(f"{group!r}: {reason}" for group, reason in sorted(found.failures.items())[:_EXAMPLES])
        yield warning(f"{len(found.failures)} groups are answered with an error, such as {named}", _ACLS)
    offsets = sum(len(group.offsets) for group in found.groups.values())
    if found.groups:
        yield ok(f"{len(found.groups)} groups with {offsets} committed offsets may be described")
    else:
        yield warning("no group may be described: there is none, or the user lacks permissions", _ACLS)


def poll_transactions(subject: Subject) -> Iterator[CheckResult]:
    """The transactional ids that the user may describe, of the tables and of the lists of the brokers."""
    assert subject.transactions is not None
    with borrowed_connection(parse_address(subject.transactions.kafka_address).servers, subject.kafka) as connection:
        try:
            found = TransactionPoller(connection, subject.clock_ms).poll(subject.transactional_ids)
        except AuthenticationFailed:
            raise
        except RequestRejected as error:
            yield problem(
                f"transactions cannot be polled: {error}",
                "upgrade the brokers to Kafka 3.0 or later, which have ListTransactions, or leave out --transactions",
            )
            return
    # brokers leave ids without Describe out of their lists, and answer about those of the tables with an error
    if found.failures:
        named = ", ".join(f"{name!r}: {reason}" for name, reason in sorted(found.failures.items())[:_EXAMPLES])
        yield warning(f"{len(found.failures)} transactional ids are answered with an error, such as {named}", _TRANSACTION_ACLS)
    if found.transactions:
        yield ok(f"{len(found.transactions)} transactional ids may be described")
    else:
        yield warning("no transactional id may be described: there is none, or the user lacks permissions", _TRANSACTION_ACLS)
