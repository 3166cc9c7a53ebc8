"""Group ids, client ids and topics that brokers store and that a path of a URL does not carry as they are."""

from dataclasses import replace

from log_builder import member
from status_story import Story

ODD_NAMES = (
    *("", ".", "..", "a/b", "//", "../..", "report.json", "all.csv", "x%2Fy", "50%", "q?r#s", " ", "a b"),
    *("~", "~home", "~a~2Fb", "größe 数据", "tab\tnul\x00", "cut\ufffd", "pay\u202eroll"),
)
#: Names that need no encoding, some of them like words of paths.
PLAIN_NAMES = ("billing", "orders-eu_1.v2~b", "...", "index", "status", "a.json.b")


def write_odd_names(root: str) -> Story:
    """Tables with a group, a member and a topic of each name, and a sample."""
    story = Story(root)
    for name in (*ODD_NAMES, *PLAIN_NAMES):
        story.log.commit(0, 3, group=name, topic=name, at=story.log.now_ms)
        story.log.group([replace(member("m", topics=[name]), client_id=name)], group=name)
    story.sample()
    return story
