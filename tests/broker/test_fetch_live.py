"""Reading a topic from a real broker: completely, in pieces, and with every way in which it can fail."""

import socket
import threading
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from group_offsets import commit_offsets
from live_kafka import QUIET, create_topic, delete_topic, produce, read_all, records_of, seen_by_a_client, visible
from patience import PATIENCE_SECONDS

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.log.entries import ControlType
from coordinator_core.log.errors import LogTruncated, LogUnreachable, RecordsDeleted, TopicMissing, TopicRecreated
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.segments import SegmentSource
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.ports import PortReservation

pytestmark = pytest.mark.broker


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver without names, as after a request to a name server, which may take minutes to time out."""
    resolve = socket.getaddrinfo

    def refuse_names(host: Any, *arguments: Any, **named: Any) -> Any:
        if not str(host).replace(".", "").isdigit():
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", refuse_names)


def address(broker: PrivateBroker, topic: str) -> str:
    return f"kafka://{broker.bootstrap}/{topic}"


def numbered(count: int, partitions: int, size: int = 40) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(i % partitions, b"key-%d" % i, None if i % 11 == 0 else b"%d-" % i + b"v" * (i % size)) for i in range(count)]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_reads_what_an_independent_client_reads(broker: PrivateBroker, topic: str, compression: str) -> None:
    create_topic(broker.bootstrap, topic, 3)
    produce(broker.bootstrap, topic, numbered(3000, 3), compression_type=compression)
    with KafkaSource(address(broker, topic)) as log:
        assert log.partitions() == (0, 1, 2)
        assert log.earliest_offsets() == {0: 0, 1: 0, 2: 0}
        assert log.end_offsets() == {0: 1000, 1: 1000, 2: 1000}
        records = read_all(log)
    assert visible(records) == seen_by_a_client(broker.bootstrap, topic, {0: 1000, 1: 1000, 2: 1000})
    assert len(records) == 3000


def test_reads_the_markers_of_transactions_that_clients_do_not_see(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, **QUIET})
    producer.init_transactions(PATIENCE_SECONDS)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.flush):
        producer.begin_transaction()
        producer.produce(topic, b"in a transaction", partition=0)
        producer.flush(PATIENCE_SECONDS)
        end(20)
    with KafkaSource(address(broker, topic)) as log:
        ends = log.end_offsets()
        records = read_all(log)
    assert ends == {0: 5}
    assert [record.is_control for record in records] == [False, True, False, True, False]
    markers = [ControlType(int.from_bytes((record.key or b"")[2:4], "big")) for record in records if record.is_control]
    assert markers == [ControlType.COMMIT, ControlType.ABORT]
    assert all(record.is_transactional for record in records)
    assert len({record.producer_id for record in records}) == 1
    assert visible(records) == seen_by_a_client(broker.bootstrap, topic, ends)
    producer.abort_transaction(PATIENCE_SECONDS)


def test_reads_what_is_on_the_brokers_disk_when_written_into_the_offsets_topic(broker: PrivateBroker) -> None:
    produce(broker.bootstrap, "orders", [(0, None, b"x")])
    commit_offsets(broker.bootstrap, "creates-the-topic", {("orders", 0): 1})
    # The client id that brokers let write there.
    produce(broker.bootstrap, "__consumer_offsets", numbered(2000, 4), client_id="__admin_client")
    with KafkaSource(address(broker, "__consumer_offsets")) as log:
        records = read_all(log)
        ids = log.topic_ids()
        topic_id = log.topic_id
    disk = SegmentSource(broker.data)
    ends = disk.end_offsets()
    assert records == records_of((p, columns) for p in disk.partitions() for columns in disk.read_columns(p, 0, ends[p]))
    assert len(records) > 2000
    assert topic_id is not None
    assert ids[topic_id] == "__consumer_offsets"
    assert ids.items() <= disk.topic_ids().items()


def test_reads_any_stretch_however_little_a_response_may_hold(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 3)
    produce(broker.bootstrap, topic, numbered(900, 3, size=400), batch_num_messages=40)
    with KafkaSource(address(broker, topic), partition_bytes=1000, response_bytes=1500) as log:
        everything = read_all(log)
        wanted = {0: (0, 7), 1: (13, 250), 2: (299, 300)}
        stretch = records_of(log.read_many(wanted))
        one = records_of((1, columns) for columns in log.read_columns(1, 13, 250))
        nothing = list(log.read_many({0: (5, 5), 1: (9, 3)}))
    assert len(everything) == 900
    inside = [record for record in everything if record.offset in range(*wanted[record.partition])]
    assert stretch == inside
    assert one == [record for record in inside if record.partition == 1]
    assert nothing == []


def test_one_batch_larger_than_the_request_allows(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    large = bytes(range(256)) * 3500
    produce(broker.bootstrap, topic, [(0, b"k", large), (0, b"k", b"small")], message_max_bytes=1_000_000)
    with KafkaSource(address(broker, topic), partition_bytes=500) as log:
        assert [record.value for record in read_all(log)] == [large, b"small"]


def test_a_missing_topic_is_named_and_not_created(broker: PrivateBroker, topic: str) -> None:
    with pytest.raises(TopicMissing, match=f"no topic {topic}: check the name"):
        KafkaSource(address(broker, topic))
    assert topic not in AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET}).list_topics(timeout=PATIENCE_SECONDS).topics


def test_a_missing_partition_is_named(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 2)
    with KafkaSource(address(broker, topic)) as log, pytest.raises(TopicMissing, match="no partition 2, 7, only 0-1"):
        next(log.read_many({1: (0, 1), 2: (0, 1), 7: (0, 1)}))


def test_a_recreated_topic_is_refused(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    produce(broker.bootstrap, topic, numbered(10, 1))
    log = KafkaSource(address(broker, topic))
    earlier_id = log.topic_id
    assert earlier_id is not None
    delete_topic(broker.bootstrap, topic)
    create_topic(broker.bootstrap, topic, 1)
    produce(broker.bootstrap, topic, numbered(20, 1))
    with pytest.raises(TopicRecreated, match="deleted and created again"):
        list(log.read_columns(0, 10, 20))
    log.close()
    with pytest.raises(TopicRecreated, match=f"its id was {uuid_text(earlier_id)} and is"):
        KafkaSource(address(broker, topic), expected_topic_id=earlier_id)


def test_deleted_records_are_an_error_with_numbers(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    produce(broker.bootstrap, topic, numbered(50, 1))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    for future in admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        future.result(PATIENCE_SECONDS)
    with KafkaSource(address(broker, topic)) as log:
        assert log.earliest_offsets() == {0: 30}
        assert len(records_of(log.read_many({0: (30, 50)}))) == 20
        with pytest.raises(RecordsDeleted, match=r"has offsets 30 to 50, but offset 12 is needed.*start with new tables"):
            list(log.read_columns(0, 12, 50))


def test_a_log_that_ends_before_the_position_is_an_error_with_numbers(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    produce(broker.bootstrap, topic, numbered(5, 1))
    with KafkaSource(address(broker, topic), options={"retry_seconds": "0.5"}) as log:
        with pytest.raises(LogTruncated, match="has offsets 0 to 5, but offset 90 is needed"):
            list(log.read_columns(0, 90, 100))
        pieces = log.read_columns(0, 0, 100)
        assert len(next(pieces)) == 5
        with pytest.raises(LogTruncated, match="ends at offset 5, but records up to offset 100 are needed"):
            next(pieces)


@pytest.mark.long
def test_a_broker_killed_during_a_read_is_waited_for(topic: str) -> None:
    with PrivateBroker() as broker:
        create_topic(broker.bootstrap, topic, 2)
        produce(broker.bootstrap, topic, numbered(4000, 2), batch_num_messages=100, acks="all")
        with KafkaSource(address(broker, topic), partition_bytes=4000, response_bytes=8000) as log:
            pieces = log.read_many({0: (0, 2000), 1: (0, 2000)})
            read = [next(pieces), next(pieces)]
            broker.kill()
            comeback = threading.Thread(target=broker.start)
            comeback.start()
            read += pieces
            comeback.join()
            assert len(records_of(read)) == 4000
        # Returned after the outage, and idle while the broker restarts: the next reader does not notice.
        broker.restart()
        with KafkaSource(address(broker, topic)) as log:
            assert len(read_all(log)) == 4000
        broker.kill()
        with pytest.raises(LogUnreachable, match="connection refused"):
            KafkaSource(address(broker, topic), connect_limit_seconds=0.5, options={"retry_seconds": "0.5"})


@pytest.mark.usefixtures("no_names")
@pytest.mark.parametrize(
    ("server", "why"), [("127.0.0.1:{port}", "connection refused"), ("no-such-host.invalid:9092", "does not resolve")]
)
def test_an_address_without_a_broker_fails_with_the_reason(server: str, why: str) -> None:
    reserved = PortReservation()
    server = server.format(port=reserved.port)
    with pytest.raises(LogUnreachable, match=f"no broker answers at {server} .*{why}"):
        KafkaSource(f"kafka://{server}/t", connect_limit_seconds=0.5)
    reserved.release()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "4.3.0"])
def test_every_generation_of_brokers(version: str, topic: str) -> None:
    with PrivateBroker(version) as broker:
        produce(broker.bootstrap, topic, [(0, b"k-%d" % i, b"v" * (i % 300)) for i in range(2000)])
        with KafkaSource(address(broker, topic), partition_bytes=2000) as log:
            assert visible(read_all(log)) == seen_by_a_client(broker.bootstrap, topic, {0: 2000})
            if version < "2.8":
                assert log.topic_id is None
                assert log.topic_ids() == {}
            else:
                assert log.topic_id is not None
                assert log.topic_ids()[log.topic_id] == topic
            with pytest.raises(LogTruncated, match="has offsets 0 to 2000"):
                list(log.read_columns(0, 3000, 3001))
        with pytest.raises(TopicMissing):
            KafkaSource(address(broker, "never-made"))
        with KafkaSource(address(broker, topic)) as log:
            assert "never-made" not in log.topic_ids().values()
