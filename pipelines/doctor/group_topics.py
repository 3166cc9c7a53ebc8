"""Checks of the topics that groups read: without permissions on them their lag is unknown."""

from collections.abc import Iterator, Sequence

from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_topic import BrokerError, topics_from
from coordinator_core.sources.topic_settings import TopicSettingsReader
from pipelines.doctor.finding import CheckResult, ok, warning
from pipelines.doctor.subject import Subject

#: Names in a finding.
_NAMED = 5
_DENIED = BrokerError.TOPIC_AUTHORIZATION_FAILED


def describe(subject: Subject) -> Iterator[CheckResult]:
    """Describe on the topics that groups have committed offsets for; without tables, the topics that the user may describe."""
    servers = parse_address(str(subject.address)).servers
    wanted = subject.topics
    with borrowed_connection(servers, subject.kafka) as connection:
        found = topics_from(connection.metadata(wanted or None))
        if wanted is None:
            # a response for all topics leaves out those that the user may not describe
            yield ok(f"{len(found)} topics may be described; those of groups are known after the first run")
            return
        denied = sorted(name for name, topic in found.items() if topic == _DENIED)
        if denied:
            yield warning(
                f"not authorized to describe {_listed(denied)}, so the lag of their groups is unknown",
                "kafka-acls --add --allow-principal User:… --operation Describe --topic '*'",
            )
        else:
            yield ok(f"the {len(wanted)} topics of groups may be described")


def describe_configs(subject: Subject) -> Iterator[CheckResult]:
    """DescribeConfigs on the same topics: optional, for their retention and compaction."""
    wanted = subject.topics
    if not wanted:
        return
    found = TopicSettingsReader(str(subject.address), subject.kafka).read(wanted)
    denied = sorted(name for name, settings in found.items() if settings == _DENIED.name.lower())
    if denied:
        yield warning(
            f"settings of {_listed(denied)} cannot be read, so status near_retention and the lag of compacted topics are unknown",
            "optional: kafka-acls --add --allow-principal User:… --operation DescribeConfigs --topic '*'",
        )
    else:
        yield ok("their settings may be read (DescribeConfigs)")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{'topic' if len(names) == 1 else 'topics'} {shown}{more}"
