"""Checks of the brokers: each one answers, with TLS and SASL as configured."""

import time
from collections.abc import Iterator
from functools import partial

from coordinator_core.log.errors import LogError
from coordinator_core.sources.kafka_connection import KafkaConnection, borrowed_connection, metadata_request
from coordinator_core.sources.kafka_options import parse_address
from pipelines.doctor.finding import CheckResult, ok, problem, remedy_for, warning
from pipelines.doctor.subject import Subject


def of_spark(subject: Subject) -> Iterator[CheckResult]:
    """A source that only Spark can open."""
    yield warning(
        f"the brokers of {subject.address} are not checked: Spark's Kafka source opens it",
        "where kafka:// supports the authentication too, check the same brokers with --source kafka://…",
    )


def bootstrap_servers(subject: Subject) -> Iterator[CheckResult]:
    """Each server of the address, alone."""
    for server in parse_address(str(subject.address)).servers:
        started = time.monotonic()
        connection = KafkaConnection((server,), subject.kafka)
        try:
            connection.metadata(())
        except LogError as error:
            yield problem(f"{server}: {_short(error, server)}", remedy_for(error))
        else:
            milliseconds = (time.monotonic() - started) * 1000
            yield ok(f"{server} answers after {milliseconds:.0f} ms ({_security(subject)})")
        finally:
            connection.close()


def advertised_listeners(subject: Subject) -> Iterator[CheckResult]:
    """Each broker of the cluster, at the address that it advertises: the leaders of partitions are read there."""
    servers = parse_address(str(subject.address)).servers
    with borrowed_connection(servers, subject.kafka) as connection:
        metadata = connection.metadata(())
        brokers = sorted(metadata.brokers or (), key=lambda broker: broker.node_id)
        answers = connection.send_all({broker.node_id: partial(metadata_request, names=()) for broker in brokers})
        silent = [broker for broker in brokers if isinstance(answers[broker.node_id], LogError)]
        for broker in silent:
            error = answers[broker.node_id]
            yield problem(
                f"broker {broker.node_id} advertises {broker.host}:{broker.port}: {error}",
                "make this address reachable from here, or correct advertised.listeners of the broker",
            )
        if not silent:
            cluster = getattr(metadata, "cluster_id", None)
            named = f" of cluster {cluster}" if cluster else ""
            yield ok(f"all {len(brokers)} brokers{named} answer at the addresses that they advertise")


def _security(subject: Subject) -> str:
    protocol = subject.kafka.get("security_protocol", "PLAINTEXT").upper()
    mechanism = subject.kafka.get("sasl_mechanism", "")
    return f"{protocol}, {mechanism}" if mechanism else protocol


def _short(error: LogError, server: str) -> str:
    """The message without the names of the server, which the finding begins with."""
    return str(error).removeprefix(f"no broker answers at {server} (").removeprefix(f"{server}: ").removesuffix(")")
