"""Checks of the topics that are read: permissions and settings."""

from collections.abc import Iterator, Mapping

from coordinator_core.log.errors import LogNotFound, NotAuthorized
from coordinator_core.sources.described_configs import broker_configs, topic_configs
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.offsets_retention import OFFSETS_RETENTION
from pipelines.doctor.finding import CheckResult, ok, problem, warning
from pipelines.doctor.subject import Subject
from pipelines.source.address import DEFAULT_TOPIC, SourceAddress

_MINUTE_MS = 60_000
_KEYS = ("cleanup.policy", "retention.ms", "segment.bytes", "min.insync.replicas", "compression.type")


def describe_and_read(subject: Subject) -> Iterator[CheckResult]:
    """The ACLs Describe and Read on the topic, by doing both."""
    assert subject.address is not None
    yield from _described_and_read(subject.address, subject.kafka, "a group has committed")


def describe_and_read_transactions(subject: Subject) -> Iterator[CheckResult]:
    """The same for `__transaction_state`, which brokers create for the first transactional producer."""
    assert subject.transactions is not None
    try:
        yield from _described_and_read(subject.transactions, subject.kafka, "a transactional producer has started")
    except LogNotFound as error:
        yield warning(f"{error}, so Read was not tried", "check again after a transactional producer has started")


def _described_and_read(address: SourceAddress, kafka: Mapping[str, str], event: str) -> Iterator[CheckResult]:
    """`event` is what makes the first record."""
    try:
        source = KafkaSource(str(address), kafka)
    except NotAuthorized:
        yield problem(
            f"not authorized to describe topic {address.topic}", _acls(address.topic, "Describe", "Read") + _polls(address)
        )
        return
    with source:
        ends, starts = source.end_offsets(), source.earliest_offsets()
        filled = [partition for partition in ends if ends[partition] > starts[partition]]
        try:
            for partition in filled[:1]:
                for _ in source.read_columns(partition, ends[partition] - 1, ends[partition]):
                    pass
        except NotAuthorized:
            yield problem(
                f"not authorized to read topic {address.topic}, only to describe it",
                _acls(address.topic, "Read") + _polls(address),
            )
            return
    if filled:
        yield ok(f"topic {address.topic}: {len(ends)} partitions, may be described and read")
    else:
        yield warning(
            f"topic {address.topic}: {len(ends)} partitions without records, so Read was not tried",
            f"check again after {event}",
        )


def settings(subject: Subject) -> Iterator[CheckResult]:
    """Settings of the topic that decide what can be read from it, and for how long."""
    address = subject.address
    assert address is not None
    servers = parse_address(str(address)).servers
    with borrowed_connection(servers, subject.kafka) as connection:
        yield from _judged(address.topic, topic_configs(connection, address.topic, _KEYS), "offsets")
        (node,) = [broker.node_id for broker in connection.metadata(()).brokers or ()][:1]
        yield from _retention(broker_configs(connection, node, (OFFSETS_RETENTION,)), subject)


def settings_of_transactions(subject: Subject) -> Iterator[CheckResult]:
    """The same settings of `__transaction_state`."""
    address = subject.transactions
    assert address is not None
    servers = parse_address(str(address)).servers
    with borrowed_connection(servers, subject.kafka) as connection:
        yield from _judged(address.topic, topic_configs(connection, address.topic, _KEYS), "transactional ids")


def _judged(topic: str, found: Mapping[str, str] | str, content: str) -> Iterator[CheckResult]:
    """`found` is the reason if the settings cannot be read."""
    if isinstance(found, str):
        yield warning(f"settings of topic {topic} cannot be read: {found}", "optional: " + _acls(topic, "DescribeConfigs"))
        return
    policy = {part.strip() for part in found.get("cleanup.policy", "delete").split(",")}
    described = ", ".join(f"{name} {found[name]}" for name in _KEYS if name in found and name != "retention.ms")
    if "delete" in policy:
        days = int(found.get("retention.ms", "-1")) / 86_400_000
        kept = "records" if days < 0 else f"records older than {days:g} days"
        yield problem(
            f"topic {topic}: cleanup.policy is {found.get('cleanup.policy')}: brokers delete {kept}, current {content} too",
            f"set cleanup.policy of {topic} to compact, Kafka's default for it",
        )
    else:
        yield ok(f"topic {topic}: {described}")


def _retention(found: Mapping[str, str] | str, subject: Subject) -> Iterator[CheckResult]:
    """The broker's offset retention against that of the job, which uses the broker's unless it has a setting."""
    minutes = subject.retention_ms // _MINUTE_MS
    if isinstance(found, str) or OFFSETS_RETENTION not in found:
        reason = f": {found}" if isinstance(found, str) else ""
        whence = "its setting" if subject.retention_is_set else f"the default of era {subject.era.name}"
        yield warning(
            f"{OFFSETS_RETENTION} of the brokers cannot be read{reason}; the job uses {minutes}, {whence}",
            "optional: allow DescribeConfigs on the cluster, or compare job.retention_minutes with the brokers' setting yourself",
        )
    elif not subject.retention_is_set:
        yield ok(f"{OFFSETS_RETENTION} of the brokers is {found[OFFSETS_RETENTION]}, which the job uses")
    elif int(found[OFFSETS_RETENTION]) != minutes:
        yield problem(
            f"{OFFSETS_RETENTION} of the brokers is {found[OFFSETS_RETENTION]}, the job uses {minutes}",
            "times of expiry are wrong: leave out job.retention_minutes (or --retention-minutes), and the job asks the brokers",
        )
    else:
        yield ok(f"{OFFSETS_RETENTION} is {minutes}, as in the job")


def _acls(topic: str, *operations: str) -> str:
    flags = " ".join(f"--operation {operation}" for operation in operations)
    return f"kafka-acls --add --allow-principal User:… {flags} --topic {topic}"


def _polls(address: SourceAddress) -> str:
    """The source that needs no permission on the topic, and the ACLs that it needs."""
    if address.topic != DEFAULT_TOPIC:
        return ""
    return (
        f"; or use --source kafka-groups://{address.location}, which reads no topic and needs --operation Describe on --cluster "
        "(or on --group '*') and on --topic '*'"
    )
