"""Polls of a live broker beside the log of the same broker: the same tables, but for what a poll cannot know."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from doctor_findings import Doctor
from eventually import equal_to, eventually
from following import Job
from group_offsets import commit_offsets
from live_lag import LiveLag
from patience import PATIENCE_SECONDS
from poll_comparison import UNKNOWN_TO_A_POLL, difference, known_to_both, polled, rows
from private_cluster import PrivateCluster

from coordinator_core.log.errors import NotAuthorized
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.kafka_connection import close_idle_connections
from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.runtime.errors import UsageError
from pipelines.source.name_patterns import NamePatterns

pytestmark = [pytest.mark.broker, pytest.mark.long]

PARTITIONS = 4
TOPIC = "orders"


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """Not the session's: all its groups are compared."""
    with PrivateBroker("4.1.1", offsets_partitions=4) as running:
        with Clients(running.bootstrap) as made:
            made.create_topics([TOPIC], PARTITIONS)
            made.produce(TOPIC, PARTITIONS, 40)
        yield running
        close_idle_connections()


@pytest.fixture
def clients(broker: PrivateBroker) -> Iterator[Clients]:
    with Clients(broker.bootstrap) as made:
        yield made


def test_both_sources_make_the_same_tables(broker: PrivateBroker, clients: Clients, tmp_path: Path) -> None:
    classic = [clients.consumer("classic-app", [TOPIC], client_id=f"worker-{number}") for number in range(2)]
    clients.settle(classic, PARTITIONS)
    modern = [clients.consumer("modern-app", [TOPIC], group_protocol="consumer") for _ in range(2)]
    clients.settle(modern, PARTITIONS)
    clients.commit_everywhere(classic, 5, "note")
    clients.commit_everywhere(modern, 7)
    left = clients.consumer("left-app", [TOPIC])
    clients.settle([left], PARTITIONS)
    clients.commit_everywhere([left], 10)
    clients.leave(left)
    commit_offsets(broker.bootstrap, "simple-app", {(TOPIC, 1): 3})
    groups = {"classic-app": "classic", "modern-app": "consumer", "left-app": "classic", "simple-app": "simple"}

    with KafkaSource(f"kafka://{broker.bootstrap}/{TOPIC}") as source:
        names = {topic_id: (name, "cluster") for topic_id, name in source.topic_ids().items()}
    log, polls = LiveLag(broker.bootstrap, tmp_path / "log", names=lambda: names), tmp_path / "polls"

    def differences() -> dict[str, list[str]]:
        # members of a librdkafka that is not polled leave their groups
        for member in (*classic, *modern):
            member.poll(0)
        log.sample()
        polled(broker.bootstrap, polls)
        return {
            table: one_sided
            for table in UNKNOWN_TO_A_POLL
            if (one_sided := difference(*(known_to_both(root, table, groups) for root in (log.root, polls))))
        }

    # a quiet moment: members of KIP-848 may reconcile once more after they own their partitions
    eventually("both sources make the same tables", differences, equal_to({}))
    assert {table: len(known_to_both(polls, table, groups)) for table in UNKNOWN_TO_A_POLL} == {
        "offsets": 13,
        "groups": 4,
        "members": 4,
        "assignments": 8,
        "lag": 13,
        "group_status": 4,
    }
    # unknown, not invented
    (group,) = rows(polls, "SELECT generation, leader, state FROM groups WHERE group_id = 'classic-app'")
    assert group == {"generation": -1, "leader": None, "state": "Stable"}
    assert rows(polls, "SELECT DISTINCT generation FROM group_members WHERE group_type = 'classic'") == [{"generation": None}]
    unknown = ("to_generation", "started_at", "duration_seconds", "seconds_without_owner")
    found = rows(polls, f"SELECT {', '.join(unknown)} FROM rebalances WHERE group_type = 'classic'")
    assert all(row == dict.fromkeys(unknown) for row in found)
    assert rows(polls, "SELECT DISTINCT commit_timestamp FROM offsets") == [{"commit_timestamp": None}]
    assert main(["check", "--tables", str(polls)]) == 0


def test_a_change_between_two_polls_is_a_row_of_the_histories(broker: PrivateBroker, tmp_path: Path) -> None:
    commit_offsets(broker.bootstrap, "moving-app", {(TOPIC, 0): 8, (TOPIC, 1): 4})
    polled(broker.bootstrap, tmp_path)
    commit_offsets(broker.bootstrap, "moving-app", {(TOPIC, 0): 9})
    commit_offsets(broker.bootstrap, "moving-app", {(TOPIC, 0): 2})
    polled(broker.bootstrap, tmp_path)
    history = "SELECT change, committed_offset, previous_offset, commits FROM offset_history WHERE group_id = 'moving-app' "
    changes = rows(tmp_path, history + "AND partition = 0 ORDER BY log_offset")
    assert changes == [
        {"change": "commit", "committed_offset": 8, "previous_offset": None, "commits": 1},
        # the poll has not seen the commit in between
        {"change": "rewind", "committed_offset": 2, "previous_offset": 8, "commits": 1},
    ]
    assert len(rows(tmp_path, history + "AND partition = 1")) == 1


def test_a_deleted_group_is_removed_by_the_second_poll(broker: PrivateBroker, clients: Clients, tmp_path: Path) -> None:
    commit_offsets(broker.bootstrap, "deleted-app", {(TOPIC, 0): 8})
    options = {"lag_interval_seconds": 0}
    polled(broker.bootstrap, tmp_path, **options)
    clients.admin.delete_consumer_groups(["deleted-app"])["deleted-app"].result(PATIENCE_SECONDS)
    of_group = "WHERE group_id = 'deleted-app'"
    polled(broker.bootstrap, tmp_path, **options)
    assert rows(tmp_path, f"SELECT change FROM group_history {of_group}") == [{"change": "poll_missing"}]
    assert len(rows(tmp_path, f"SELECT * FROM offsets {of_group}")) == 1
    polled(broker.bootstrap, tmp_path, **options)
    assert rows(tmp_path, f"SELECT * FROM offsets {of_group}") == []
    assert rows(tmp_path, f"SELECT * FROM groups {of_group}") == []


def test_groups_are_selected_by_name(broker: PrivateBroker, tmp_path: Path) -> None:
    for group in ("picked-app", "picked-test", "unpicked-app"):
        commit_offsets(broker.bootstrap, group, {(TOPIC, 0): 8})
    options = {"lag_interval_seconds": 0}
    polled(broker.bootstrap, tmp_path, groups=selection("groups", ["picked-.*"], [".*-test"]), **options)
    assert rows(tmp_path, "SELECT group_id FROM groups") == [{"group_id": "picked-app"}]
    with pytest.raises(UsageError, match=r"leaves out 1 of the groups in the tables, such as 'picked-app'"):
        polled(broker.bootstrap, tmp_path, groups=selection("groups", ["other-.*"], []), **options)


def test_topics_are_selected_by_name(broker: PrivateBroker, clients: Clients, tmp_path: Path) -> None:
    clients.create_topics(["picked-topic", "unpicked-topic"], 1)
    topics = ("picked-topic", "unpicked-topic")
    members = [clients.consumer("two-topics", topics), clients.consumer("two-topics-848", topics, group_protocol="consumer")]
    for member in members:
        clients.settle([member], len(topics))
    clients.commit_everywhere(members, 0)
    commit_offsets(broker.bootstrap, "other-topic", {("unpicked-topic", 0): 0})

    def found() -> list[tuple[str, str, str]]:
        for member in members:
            member.poll(0)
        polled(broker.bootstrap, tmp_path, topics=selection("topics", ["picked-.*"], []))
        named = "SELECT '{0}' AS name, group_id, topic FROM {0} WHERE group_id LIKE '%topic%'"
        union = " UNION ALL ".join(named.format(table) for table in ("offsets", "assignments", "lag"))
        return [tuple(row.values()) for row in rows(tmp_path, f"{union} ORDER BY 1, 2, 3")]

    groups = ("two-topics", "two-topics-848")
    wanted = [(table, group, "picked-topic") for table in ("assignments", "lag", "offsets") for group in groups]
    eventually("both groups have the picked topic alone", found, equal_to(wanted))
    assert rows(tmp_path, "SELECT * FROM groups WHERE group_id = 'other-topic'") == []
    assert rows(tmp_path, "SELECT * FROM end_offsets WHERE topic <> 'picked-topic'") == []
    with pytest.raises(UsageError, match=r"\[topics\] leaves out 1 of the topics in the tables, such as 'picked-topic'"):
        polled(broker.bootstrap, tmp_path, topics=selection("topics", [], ["picked-.*"]))


def selection(section: str, include: list[str], exclude: list[str]) -> NamePatterns:
    return NamePatterns.of(section, {"include": include, "exclude": exclude})


def test_patterns_are_for_polls_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "conf.toml"
    conf.write_text('[groups]\ninclude = ["billing.*"]\n')
    assert main(["run", "--source", "kafka://127.0.0.1:1", "--tables", str(tmp_path / "t"), "--conf", str(conf)]) == 2
    assert "[groups] is for kafka-groups:// only: kafka reads all groups" in capsys.readouterr().err


def test_a_job_follows_by_polls_and_stops_on_a_signal(broker: PrivateBroker, tmp_path: Path) -> None:
    with Job(f"kafka-groups://{broker.bootstrap}", tmp_path) as job:
        job.wait_until_logged("ready: following kafka-groups://")
        commit_offsets(broker.bootstrap, "followed-app", {(TOPIC, 2): 6})
        eventually(
            "the job has the lag of the commit",
            lambda: rows(tmp_path, "SELECT lag FROM lag WHERE group_id = 'followed-app'"),
            lambda found: found == [{"lag": 4}],
            unless=job.failure,
            pause_seconds=0.2,
        )
        job.signal(signal.SIGTERM)
        assert job.ended() == 0
        assert job.tracebacks == []


def test_a_job_polls_on_after_an_outage(tmp_path: Path) -> None:
    with PrivateBroker("4.1.1", offsets_partitions=2) as stopped:
        with Clients(stopped.bootstrap) as clients:
            clients.create_topics([TOPIC], 1)
        commit_offsets(stopped.bootstrap, "kept-app", {(TOPIC, 0): 0})
        with Job(f"kafka-groups://{stopped.bootstrap}", tmp_path) as job:
            job.wait_until_logged("ready: following kafka-groups://")
            stopped.stop()
            job.wait_until_logged("waiting for the brokers")
            stopped.start()
            job.wait_until_logged("the brokers answer again")
            commit_offsets(stopped.bootstrap, "kept-app", {(TOPIC, 0): 7})
            eventually(
                "the job has the commit",
                lambda: rows(tmp_path, "SELECT committed_offset FROM offsets"),
                equal_to([{"committed_offset": 7}]),
                unless=job.failure,
                pause_seconds=0.2,
            )
            job.signal(signal.SIGTERM)
            assert job.ended() == 0
            assert len(job.lines_with("waiting for the brokers")) == 1
            assert job.tracebacks == []
        close_idle_connections()


def test_an_address_without_broker_creates_no_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--source", "kafka-groups://127.0.0.1:1", "--tables", str(tmp_path / "tables")]
    assert main(arguments) == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err
    assert not (tmp_path / "tables").exists()


def test_a_folder_has_one_kind_of_source(broker: PrivateBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    polled(broker.bootstrap, tmp_path, lag_interval_seconds=0)
    arguments = ["run", "--source", f"kafka://{broker.bootstrap}", "--tables", str(tmp_path)]
    assert main(arguments) == 2
    assert "were made from polls (kafka-groups://)" in capsys.readouterr().err


def test_without_read_on_the_topic_the_source_is_named_and_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with PrivateBroker("4.1.1", offsets_partitions=2, properties=properties) as guarded, Clients(guarded.bootstrap) as clients:
        clients.create_topics([TOPIC], 1)
        clients.commit(clients.consumer("guarded-app"), [(TOPIC, 0, 0)])
        denied = AclBinding(
            *(ResourceType.TOPIC, "__consumer_offsets", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*"),
            *(AclOperation.READ, AclPermissionType.DENY),
        )
        allowed = AclBinding(
            *(ResourceType.TOPIC, "__consumer_offsets", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*"),
            *(AclOperation.DESCRIBE, AclPermissionType.ALLOW),
        )
        for made in clients.admin.create_acls([denied, allowed]).values():
            made.result(PATIENCE_SECONDS)

        def refusal() -> str | None:
            try:
                with KafkaSource(f"kafka://{guarded.bootstrap}/__consumer_offsets") as log:
                    for partition, end in log.end_offsets().items():
                        list(log.read_columns(partition, 0, end))
            except NotAuthorized as error:
                return str(error)
            return None

        assert "--source kafka-groups://" in (eventually("the broker refuses Read", refusal) or "")
        found = Doctor(capsys).examine("--source", f"kafka://{guarded.bootstrap}")
        (remedy,) = [row["remedy"] for row in found.rows if row["check"] == "permissions"]
        assert f"kafka-groups://{guarded.bootstrap}" in remedy
        found = Doctor(capsys).examine("--source", f"kafka-groups://{guarded.bootstrap}")
        assert found.of("source", "polls") == [("ok", "1 groups with 1 committed offsets may be described")]
        polled(guarded.bootstrap, tmp_path)
        assert rows(tmp_path, "SELECT group_id, lag FROM lag") == [{"group_id": "guarded-app", "lag": 0}]
        close_idle_connections()


def test_a_stopped_broker_changes_nothing_for_its_groups(tmp_path: Path) -> None:
    """Its groups have no other coordinator: the partitions of the topic of offsets have one replica."""
    with PrivateCluster(2, properties={"offsets.topic.replication.factor": "1"}) as cluster:
        first, second = cluster.brokers
        bootstrap = f"{first.bootstrap},{second.bootstrap}"
        names = [f"app-{number}" for number in range(12)]
        with Clients(bootstrap) as clients:
            clients.create_topics([TOPIC], 1)
            for name in names:
                clients.commit(clients.consumer(name), [(TOPIC, 0, 0)])
        options = {"lag_interval_seconds": 0}
        polled(bootstrap, tmp_path, **options)
        second.stop()
        for _ in range(3):
            lines = polled(bootstrap, tmp_path, **options)
        assert [line for line in lines if "answered with an error" in line or "does not answer" in line]
        assert [row["group_id"] for row in rows(tmp_path, "SELECT group_id FROM offsets ORDER BY group_id")] == sorted(names)
        assert {row["change"] for row in rows(tmp_path, "SELECT change FROM group_history")} <= {"poll_failed"}
        (batch,) = rows(tmp_path, "SELECT records_behind FROM batches ORDER BY batch_id DESC LIMIT 1")
        assert batch == {"records_behind": 1}
        second.start()

        def is_complete() -> bool:
            polled(bootstrap, tmp_path, **options)
            return rows(tmp_path, "SELECT records_behind FROM batches ORDER BY batch_id DESC LIMIT 1") == [{"records_behind": 0}]

        eventually("a poll is complete again", is_complete)
        assert [row["group_id"] for row in rows(tmp_path, "SELECT group_id FROM offsets ORDER BY group_id")] == sorted(names)
        close_idle_connections()


@pytest.mark.parametrize(("version", "era"), [("3.9.1", "3")])
def test_brokers_of_other_releases_are_polled(version: str, era: str, tmp_path: Path) -> None:
    with PrivateBroker(version, offsets_partitions=2) as other, Clients(other.bootstrap) as clients:
        clients.create_topics([TOPIC], 2)
        members = [clients.consumer("classic-app", [TOPIC]) for _ in range(2)]
        clients.settle(members, 2)
        clients.commit_everywhere(members, 0)
        commit_offsets(other.bootstrap, "simple-app", {(TOPIC, 1): 0})
        polled(other.bootstrap, tmp_path, era=era)
        groups = rows(tmp_path, "SELECT group_id, group_type, state, member_count FROM groups ORDER BY group_id")
        assert [tuple(row.values()) for row in groups] == [
            ("classic-app", "classic", "Stable", 2),
            ("simple-app", "simple", "Empty", 0),
        ]
        owned = rows(tmp_path, "SELECT topic, partition FROM assignments ORDER BY partition")
        assert owned == [{"topic": TOPIC, "partition": 0}, {"topic": TOPIC, "partition": 1}]
        assert len(rows(tmp_path, "SELECT * FROM lag WHERE lag = 0")) == 3
        close_idle_connections()


@pytest.mark.parametrize(
    ("version", "era"),
    [
        ("2.8.2", "3"),
        pytest.param("1.1.1", "1", marks=pytest.mark.slow),
    ],
)
def test_brokers_with_requests_about_one_group_make_the_same_tables(
    version: str, era: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # up to 2.0 offsets expire by the time of their commits, which polls do not know: no warning about that in the log's tables
    properties = {"offsets.retention.minutes": "100000"}
    with PrivateBroker(version, offsets_partitions=2, properties=properties) as old, Clients(old.bootstrap) as clients:
        clients.create_topics([TOPIC], PARTITIONS)
        clients.produce(TOPIC, PARTITIONS, 40)
        members = [clients.consumer("classic-app", [TOPIC], client_id=f"worker-{number}") for number in range(2)]
        clients.settle(members, PARTITIONS)
        clients.commit_everywhere(members, 5, "note")
        left = clients.consumer("left-app", [TOPIC])
        clients.settle([left], PARTITIONS)
        clients.commit_everywhere([left], 10)
        clients.leave(left)
        commit_offsets(old.bootstrap, "simple-app", {(TOPIC, 1): 3})
        groups = {"classic-app": "classic", "left-app": "classic", "simple-app": "simple"}
        log, polls = LiveLag(old.bootstrap, tmp_path / "log", era=Era.named(era)), tmp_path / "polls"

        def differences() -> dict[str, list[str]]:
            for member in members:
                member.poll(0)
            log.sample()
            polled(old.bootstrap, polls, era=era)
            return {
                table: one_sided
                for table in UNKNOWN_TO_A_POLL
                if (one_sided := difference(*(known_to_both(root, table, groups) for root in (log.root, polls))))
            }

        eventually("both sources make the same tables", differences, equal_to({}))
        assert len(known_to_both(polls, "offsets", groups)) == 9
        assert rows(polls, "SELECT count(*) AS n FROM expiring_offsets WHERE expires_at IS NOT NULL") == [{"n": 0}]
        assert main(["check", "--tables", str(polls)]) == 0

        options = {"lag_interval_seconds": 0, "era": era}
        clients.leave(*members)
        commit_offsets(old.bootstrap, "later-app", {(TOPIC, 2): 4})
        polled(old.bootstrap, polls, **options)
        assert rows(polls, "SELECT state, member_count FROM groups WHERE group_id = 'classic-app'") == [
            {"state": "Empty", "member_count": 0}
        ]
        assert len(rows(polls, "SELECT * FROM offset_history WHERE group_id = 'later-app'")) == 1

        capsys.readouterr()
        found = Doctor(capsys).examine("--source", f"kafka-groups://{old.bootstrap}", "--transactions", "--era", era)
        ((mark, text),) = found.of("source", "polls of transactions")
        assert (mark, text.partition(":")[0]) == ("problem", "transactions cannot be polled")
        # what did not change has no second row: the tables hold it as the next answer has it
        assert len(rows(polls, "SELECT * FROM offset_history WHERE group_id = 'left-app'")) == PARTITIONS
        close_idle_connections()
