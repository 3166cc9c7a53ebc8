"""The tables whose pages are tested and pictured. All of their times are fixed."""

from dataclasses import replace
from pathlib import Path

from log_builder import member
from status_story import Story

from coordinator_core.codec import encode_assignment
from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ProtocolTopicPartitions

CLUSTER = "shop"
#: Group ids, client ids, topics and metadata that clients may choose.
HOSTILE = ('<script>alert("1")</script>/../\'&amp;', "pay\u202eroll\x00\n", "x" * 32_767, "report.json", "مجموعة-المدفوعات")
MANY_PARTITIONS, MANY_MEMBERS = 200, 65


def write_extreme_tables(folder: Path) -> str:
    """Groups of extreme sizes and names: `wide` has 200 partitions, `crowd` 65 members. Returns the value of `--tables`."""
    root = folder / "extreme"
    story = Story(str(root))
    members = [_member(number, number) for number in range(MANY_MEMBERS)]
    for minutes in (0, 20):
        story.at(60 * minutes)
        for partition in range(MANY_PARTITIONS):
            story.end(27_000_000 + 1_000 * minutes + partition, partition)
            story.commit(27_000_000 + partition, partition, group="wide")
        for partition in range(MANY_MEMBERS):
            story.commit(26_000_000 + partition, partition, group="crowd")
        story.log.group(members[minutes:], group="crowd", generation=1 + minutes)
        story.log.group([_member(1, *range(MANY_PARTITIONS))], group="wide", generation=1 + minutes)
        for name in HOSTILE:
            story.log.commit(0, 3, group=name, topic=name[:240], at=story.log.now_ms)
            story.log.group([replace(_member(0), client_id=name[:1_000], member_id=f"m-{name[:50]}")], group=name)
        story.at(60 * minutes + 1).sample()
    return f"extreme={root}"


def _member(number: int, *partitions: int) -> MemberMetadata:
    return replace(
        member(f"consumer-{number:02}-0b1f8a9e-5d07-4f57-9d2e-3c1f6f2c7a{number:02}"),
        client_id=f"consumer-{number:02}",
        client_host=f"/10.0.4.{number}",
        assignment=encode_assignment(ConsumerProtocolAssignment((ProtocolTopicPartitions("orders", partitions),)), 0),
    )
