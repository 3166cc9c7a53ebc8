"""Four incidents that people on call meet, planted in a log of their own among groups without a defect."""

from collections.abc import Iterable
from dataclasses import replace

from log_builder import member
from status_story import Story

from coordinator_core.codec import encode_assignment
from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ProtocolTopicPartitions

CLUSTER = "oncall"
#: Minutes of the log; the incidents begin at the minutes below.
MINUTES = 45
#: A group of 60 partitions of which one is stuck.
PARTITIONS, STUCK_PARTITION, STUCK_AT = 60, 37, 12
#: The members of a group leave, and its topics are written on.
LEFT_AT = 14
#: Records per minute of a partition, and of one that is hot from the start; the member reads half of those.
RATE, HOT_RATE, HOT_PARTITION = 600, 12_000, 2
#: The offsets of a group whose member left this long before the log begins expire soon: they are kept for seven days.
EXPIRING_LEFT_AT = -(6 * 24 + 18) * 60


def write_on_call_tables(root: str) -> str:
    """Write the tables. Returns the value of `--tables`."""
    story = Story(root)
    story.at(60 * EXPIRING_LEFT_AT).commit(400, group="nightly-report", topic="reports")
    story.log.group((), group="nightly-report", generation=2, timestamp=story.log.now_ms)
    story.at(0).end(400, topic="reports")
    _join(story, "fulfilment", "orders", [range(number * 10, number * 10 + 10) for number in range(6)])
    _join(story, "mailer", "mails", [range(3)])
    _join(story, "page-counts", "page-views", [range(2), range(2, 4), range(4, 6)])
    for number in range(12):
        _join(story, f"healthy-{number:02}", "orders", [range(PARTITIONS)])
    for minute in range(MINUTES):
        _write_minute(story.at(60 * minute), minute)
    return f"{CLUSTER}={root}"


def _write_minute(story: Story, minute: int) -> None:
    if minute == LEFT_AT:
        story.log.group((), group="mailer", generation=6)
    now = minute * RATE + RATE
    for partition in range(PARTITIONS):
        story.end(now, partition)
        if partition != STUCK_PARTITION or minute <= STUCK_AT:
            story.commit(now - 5, partition, group="fulfilment")
        story.commit(now, partition, group=f"healthy-{partition % 12:02}")
    for partition in range(3):
        story.end(now, partition, topic="mails")
        if minute < LEFT_AT:
            story.commit(now - 1, partition, group="mailer", topic="mails")
    for partition in range(6):
        rate = HOT_RATE if partition == HOT_PARTITION else RATE
        story.end(1_000 + minute * rate, partition, topic="page-views")
        story.commit(1_000 + minute * min(rate, HOT_RATE // 2), partition, group="page-counts", topic="page-views")
    story.sample()


def _join(story: Story, group: str, topic: str, partitions: Iterable[range]) -> None:
    members = [_member(f"{group}-{number}", topic, assigned) for number, assigned in enumerate(partitions, 1)]
    story.log.group(members, group=group)


def _member(name: str, topic: str, partitions: Iterable[int]) -> MemberMetadata:
    assignment = ConsumerProtocolAssignment((ProtocolTopicPartitions(topic, tuple(partitions)),))
    joined = member(name, topics=(topic,))
    return replace(joined, client_id=name, client_host="/10.7.0.4", assignment=encode_assignment(assignment, 0))
