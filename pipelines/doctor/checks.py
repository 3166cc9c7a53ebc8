"""The table of all checks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from coordinator_core.log.errors import LogError
from pipelines.doctor import (
    brokers,
    certificates,
    clocks,
    group_requests,
    group_topics,
    interfaces,
    log_position,
    machine,
    object_store,
    offsets_topic,
    spark,
    tables,
)
from pipelines.doctor.finding import CheckResult, Severity, failed
from pipelines.doctor.subject import Subject
from pipelines.runtime.errors import GrouplakeError


@dataclass(frozen=True)
class Need:
    """The need of a check: an option, and a condition on its value. Without an option the check is not reported as left out."""

    option: str
    is_met: Callable[[Subject], bool]


NOTHING = Need("", lambda _: True)
# Spark's own Kafka source is opened by Spark alone, and polls read no log
LOG = Need(
    "--source",
    lambda subject: subject.address is not None and not (subject.address.is_spark_kafka or subject.address.is_polled),
)
# not reported as left out: many jobs read no transactions
TRANSACTION_LOG = Need("", lambda subject: subject.transactions is not None and not subject.transactions.is_polled)
TRANSACTION_BROKERS = Need("", lambda subject: subject.transactions is not None and subject.transactions.scheme == "kafka")
BROKERS = Need("--source", lambda subject: subject.address is not None and subject.address.scheme == "kafka")
POLLED = Need("", lambda subject: subject.address is not None and subject.address.is_polled)
POLLED_TRANSACTIONS = Need("", lambda subject: subject.transactions is not None and subject.transactions.is_polled)
SPARK_KAFKA = Need("", lambda subject: subject.address is not None and subject.address.is_spark_kafka)
TABLES = Need("--tables", lambda subject: subject.tables is not None)
FOLDER = Need("--tables", lambda subject: subject.is_local)
STORE = Need("--tables", lambda subject: subject.tables is not None and not subject.is_local)
SPARK = Need("--spark", lambda subject: subject.starts_spark)
RULES = Need("--rules", lambda subject: subject.rules is not None)


@dataclass(frozen=True)
class Check:
    """A check, with the area and the name that its findings are listed under.

    `stops_area`: after a problem the rest of the area is left out, because it would find the same again.
    """

    area: str
    name: str
    function: Callable[[Subject], Iterator[CheckResult]]
    needs: Need = NOTHING
    stops_area: bool = False


#: All checks, in the order in which they run and are printed.
CHECKS: tuple[Check, ...] = (
    Check("machine", "Python", machine.python),
    Check("machine", "Java", machine.java),
    Check("machine", "jars", machine.jars),
    Check("machine", "memory", machine.memory),
    Check("source", "connector", brokers.of_spark, SPARK_KAFKA),
    Check("source", "polls", group_requests.poll, POLLED),
    Check("source", "polls of transactions", group_requests.poll_transactions, POLLED_TRANSACTIONS),
    Check("source", "bootstrap servers", brokers.bootstrap_servers, BROKERS, stops_area=True),
    Check("source", "advertised listeners", brokers.advertised_listeners, BROKERS, stops_area=True),
    Check("source", "permissions", offsets_topic.describe_and_read, BROKERS, stops_area=True),
    Check("source", "settings", offsets_topic.settings, BROKERS),
    Check("source", "topics of groups", group_topics.describe, BROKERS),
    Check("source", "topics of groups", group_topics.describe_configs, BROKERS),
    Check("source", "clock", clocks.brokers, BROKERS),
    Check("source", "position", log_position.position, LOG),
    Check(
        *("source", "permissions of transactions", offsets_topic.describe_and_read_transactions, TRANSACTION_BROKERS),
        stops_area=True,
    ),
    Check("source", "settings of transactions", offsets_topic.settings_of_transactions, TRANSACTION_BROKERS),
    Check("source", "position of transactions", log_position.position_of_transactions, TRANSACTION_LOG),
    Check("tables", "folder", tables.folder, FOLDER, stops_area=True),
    Check("tables", "object store", object_store.access, STORE, stops_area=True),
    Check("tables", "conditional writes", object_store.conditional_writes, STORE),
    Check("tables", "layout", tables.layout, TABLES, stops_area=True),
    Check("tables", "features", tables.features, TABLES),
    Check("tables", "writer", tables.writer, FOLDER),
    Check("tables", "last batch", tables.last_batch, TABLES),
    Check("tables", "quarantine", tables.quarantine, TABLES),
    Check("tables", "clock", clocks.store, FOLDER),
    Check("certificates", "files", certificates.files),
    Check("certificates", "servers", certificates.of_brokers, BROKERS),
    Check("interfaces", "dashboard", interfaces.dashboard),
    Check("interfaces", "alert rules", interfaces.rules, RULES, stops_area=True),
    Check("interfaces", "certificates", certificates.of_receivers, RULES),
    Check("spark", "session and executors", spark.session, SPARK),
)


@dataclass(frozen=True)
class Result:
    """A finding of a check."""

    check: Check
    finding: CheckResult


def run_checks(subject: Subject, checks: Iterable[Check] = CHECKS) -> Iterator[Result]:
    """Run the checks that the subject has everything for, and yield their findings as they are found.

    An error of a check, raised by the code that the job uses too, is a problem.
    """
    stopped: set[str] = set()
    for check in checks:
        if check.area in stopped or not check.needs.is_met(subject):
            continue
        for finding in _findings(check, subject):
            if finding.mark is Severity.PROBLEM and check.stops_area:
                stopped.add(check.area)
            yield Result(check, finding)


def _findings(check: Check, subject: Subject) -> Iterator[CheckResult]:
    try:
        yield from check.function(subject)
    except (GrouplakeError, LogError) as error:
        yield failed(error)


def left_out(subject: Subject, checks: Iterable[Check] = CHECKS) -> dict[str, list[str]]:
    """Missing option → names of the checks that did not run without it."""
    given = {
        "--source": subject.address,
        "--tables": subject.tables,
        "--rules": subject.rules,
        "--spark": subject.starts_spark or None,
    }
    found: dict[str, list[str]] = {}
    for check in checks:
        option = check.needs.option
        if option and given[option] is None and check.name not in found.setdefault(option, []):
            found[option].append(check.name)
    return found
