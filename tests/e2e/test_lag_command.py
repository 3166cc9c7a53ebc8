"""`grouplake lag`: the table of Kafka's tool, remarks on standard error, other formats, and groups that do not exist."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from log_builder import Log, member
from sampled_topics import SampledTopics, sampled
from table_logs import applied

from coordinator_core.codec.consumer_protocol import encode_subscription
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolSubscription
from coordinator_core.state.era import Era
from pipelines.cli import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Tables of a group whose member has one of its topics, and of one with a long name that is behind."""
    log = Log()
    log.commit(0, 5, group="live")
    log.commit(10, 7, group="live", topic="orders")
    subscription = encode_subscription(ConsumerProtocolSubscription(("foo", "orders")), 1)
    log.group([member(subscription=subscription)], group="live")
    log.commit(1, 3, group="a-group-with-a-long-name", topic="orders", leader_epoch=4)
    applied(log, Era.named("4"), [], str(tmp_path))
    return str(tmp_path)


def printed(capsys: Captured, root: str, *arguments: str) -> tuple[str, str]:
    assert main(["lag", "--tables", root, *arguments]) == 0
    out, err = capsys.readouterr()
    return out, err


BLOCKS = """
GROUP                    TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
a-group-with-a-long-name orders          1          3               9               6               -               -               -

GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
live            foo             0          5               5               0               m1              /127.0.0.1      client
live            orders          10         7               9               2               -               -               -
"""  # noqa: E501 - as Kafka prints it


def test_the_table_is_that_of_kafkas_tool(root: str, capsys: Captured) -> None:
    sampled(root, SampledTopics(orders=9, foo=5))
    out, err = printed(capsys, root, "--all-groups")
    assert out == BLOCKS
    assert err == "\nConsumer group 'a-group-with-a-long-name' has no active members.\n"


def test_further_columns(root: str, capsys: Captured) -> None:
    topics = SampledTopics(orders=3, foo=5)
    sampled(root, topics)
    topics.now_ms += 30_000
    topics.ends["orders"] = 9
    sampled(root, topics)
    out, _ = printed(capsys, root, "--group", "a-group-with-a-long-name", "--verbose", "--seconds")
    head, row = out.strip().splitlines()
    assert head.split()[3] == "LEADER-EPOCH"
    assert head.split()[-1] == "SECONDS"
    assert row.split()[3] == "4"
    assert row.endswith("28 (0–30)")


def test_before_the_first_sample_ends_are_unknown(root: str, capsys: Captured) -> None:
    out, _ = printed(capsys, root, "--group", "live")
    assert [line.split()[3:6] for line in out.strip().splitlines()[1:]] == [["5", "-", "-"], ["7", "-", "-"]]


def test_a_negative_offset_is_no_commit_for_kafkas_tool(tmp_path: Path, capsys: Captured) -> None:
    log = Log()
    log.commit(0, -5, group="odd", topic="orders")
    applied(log, Era.named("4"), [], str(tmp_path))
    sampled(str(tmp_path), SampledTopics(orders=9))
    out, _ = printed(capsys, str(tmp_path), "--group", "odd")
    assert out.splitlines()[-1].split()[:6] == ["odd", "orders", "0", "-", "9", "-"]
    shown, _ = printed(capsys, str(tmp_path), "--group", "odd", "--format", "json")
    assert [(row["group_offset"], row["lag_reason"]) for row in map(json.loads, shown.splitlines())] == [(-5, "negative_commit")]


def test_status_and_rule_of_partitions(root: str, capsys: Captured) -> None:
    columns = ("--all-groups", "--status")
    out, _ = printed(capsys, root, *columns)
    assert {line.split()[-2] for line in out.splitlines() if line.startswith(("live", "a-group"))} == {"UNKNOWN"}
    topics = SampledTopics(orders=9, foo="leader_not_available")
    first = sampled(root, topics)
    out, _ = printed(capsys, root, *columns)
    assert [line.split()[-2:] for line in out.splitlines() if line.startswith(("live", "a-group"))] == [
        ["STOP", "stopped"],
        ["UNKNOWN", "unknown"],
        ["STOP", "stopped"],
    ]
    below = out[out.index("\nlive ") :]
    assert "STOP: No commits on orders-10 since " in below
    assert "; no member owns it; 2 records wait. (stopped, Burrow rule 2)" in below.replace("\n  ", " ")
    assert "\n  Next: Check the consumers of the group." in below
    assert "UNKNOWN: The lag of foo-0 is unknown: the partition has no leader. (unknown)" in below
    shown, _ = printed(capsys, root, *columns, "--format", "json")
    details = [json.loads(line)["detail"] for line in shown.splitlines()]
    assert details[0].startswith("No commits on orders-")
    topics.now_ms += 30_000
    topics.ends["foo"] = 5
    sampled(root, topics)
    out, _ = printed(capsys, root, "--group", "live", "--status", "--format", "json")
    assert [json.loads(line)["status"] for line in out.splitlines()] == ["OK", "STOP"]
    # as of the earlier batch: the statuses that were stored with its sample
    out, _ = printed(capsys, root, "--group", "live", "--status", "--as-of", str(first.batch_id), "--format", "json")
    assert [json.loads(line)["rule"] for line in out.splitlines()] == ["unknown", "stopped"]


MEMBERS = """
GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   
live            m1              /127.0.0.1      client          1               -               foo:0                -               -                   
"""  # noqa: E501, W291 - as Kafka prints it
STATES = """
GROUP                    COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS
a-group-with-a-long-name -                         -                    Empty                0

GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS
live            -                         range                Stable               1
"""


def test_members_and_states(root: str, capsys: Captured) -> None:
    assert printed(capsys, root, "--group", "live", "--members", "--verbose") == (MEMBERS, "")
    out, err = printed(capsys, root, "--all-groups", "--state")
    assert (out, err) == (STATES, "\nConsumer group 'a-group-with-a-long-name' has no active members.\n")
    out, _ = printed(capsys, root, "--all-groups", "--members", "--format", "json")
    assert [json.loads(line)["member_id"] for line in out.splitlines()] == ["m1"]
    out, _ = printed(capsys, root, "--all-groups", "--state", "--format", "csv")
    assert [line.split(",")[:3] for line in out.splitlines()[1:]] == [
        ["a-group-with-a-long-name", "simple", "Empty"],
        ["live", "classic", "Stable"],
    ]


def test_watch_prints_each_new_batch(root: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = SampledTopics(orders=9, foo=5)
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt
        if len(naps) == 2:
            sampled(root, topics)

    # of this module alone: py4j's threads of other tests sleep too
    monkeypatch.setattr("pipelines.query.watch.time", SimpleNamespace(sleep=nap))
    out, _ = printed(capsys, root, "--group", "live", "--watch", "7")
    assert naps == [7, 7, 7]
    assert [line.split(",")[0] for line in out.splitlines() if line.startswith("batch")] == ["batch 0", "batch 1"]
    assert "live            orders          10         7               9               2 " in out


def test_other_formats_have_every_column(root: str, capsys: Captured) -> None:
    sampled(root, SampledTopics(orders=9, foo=5))
    out, _ = printed(capsys, root, "--group", "live", "--format", "json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["topic"], row["lag"], row["lag_reason"]) for row in rows] == [("foo", 0, None), ("orders", 2, "first_sample")]
    out, _ = printed(capsys, root, "--all-groups", "--format", "csv")
    assert len(out.splitlines()) == 4


def test_lag_as_of_an_earlier_batch(root: str, capsys: Captured) -> None:
    topics = SampledTopics(orders=9, foo=5)
    first = sampled(root, topics)
    topics.now_ms += 30_000
    topics.ends["orders"] = 20
    sampled(root, topics)
    out, _ = printed(capsys, root, "--group", "a-group-with-a-long-name", "--as-of", str(first.batch_id))
    assert out.split()[-4] == "6"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name groups with --group, or all with --all-groups"),
        (["--group", "live", "--all-groups"], "name groups with --group, or all with --all-groups"),
        (["--all-groups", "--state", "--seconds"], "--seconds, --status and --transactions add columns to the offsets"),
        (["--all-groups", "--members", "--state"], "not allowed with argument"),
        (["--all-groups", "--watch", "--as-of", "0"], "--watch shows the newest batch"),
        (["--all-groups", "--watch", "0"], "'0' is not a whole number above 0"),
        (["--group", "gone", "--state"], "no group 'gone' in batch 0: list them with --all-groups"),
        (["--group", "gone"], "no group 'gone' in batch 0: list them with --all-groups"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str, root: str, capsys: Captured) -> None:
    assert main(["lag", "--tables", root, *arguments]) == 2
    assert message in capsys.readouterr().err
