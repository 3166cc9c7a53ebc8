"""Kafka's Java client in any version, in a JVM of its own that Python drives through PySpark's py4j: no compiler needed."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from patience import PATIENCE_SECONDS
from py4j import java_gateway, protocol
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from pipelines.runtime.cache.jars import resolved_jars, spark_jars
from pipelines.runtime.cache.java import java_executable
from pipelines.runtime.progress import Progress

#: Releases whose clients tests run: those before 2.8 require Produce.
VERSIONS = ("0.11.0.3", "1.0.2", "1.1.1", "2.0.1", "2.3.1", "2.5.1", "2.7.2")

_LOGGING = "org.slf4j:slf4j-simple:1.7.36"
_BYTES = "org.apache.kafka.common.serialization.ByteArray"
_JVM = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
)
_POLL_MS = 50


class JavaMember:
    """A `KafkaConsumer` that a thread of its own polls until it is closed.

    Old ones do not return from `poll` before they have joined, so members of a group cannot take turns.
    """

    def __init__(self, jvm: Any, settings: Mapping[str, str], topic: str) -> None:
        self._jvm = jvm
        self._settings = dict(settings)
        self._topic = topic
        self._work: SimpleQueue[Callable[[Any], None]] = SimpleQueue()
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        #: Partitions that it owned after its last poll.
        self.owned: frozenset[int] = frozenset()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def commit(self, offsets: Mapping[int, int]) -> None:
        """`commitSync` of partition → offset. Raises the exception of the client."""
        done: Future[None] = Future()

        def work(consumer: Any) -> None:
            try:
                self._commit(consumer, offsets)
            except Py4JJavaError as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        self._work.put(work)
        done.result(PATIENCE_SECONDS)

    def failure(self) -> str | None:
        """The reason why its thread has ended before it was closed."""
        return None if self._failure is None else str(self._failure)

    def close(self) -> None:
        """Leave the group. Raises the first exception of the client."""
        self._closing.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the consumer does not close"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(_properties(self._jvm, self._settings))
            topics = self._jvm.java.util.ArrayList()
            topics.add(self._topic)
            consumer.subscribe(topics)
            try:
                self._poll(consumer)
            finally:
                consumer.close()
        except BaseException as error:
            self._failure = error

    def _poll(self, consumer: Any) -> None:
        while not self._closing.is_set():
            consumer.poll(_POLL_MS)
            self.owned = frozenset(each.partition() for each in consumer.assignment())
            try:
                self._work.get_nowait()(consumer)
            except Empty:
                continue

    def _commit(self, consumer: Any, offsets: Mapping[int, int]) -> None:
        wanted = self._jvm.java.util.HashMap()
        for partition, offset in offsets.items():
            at = self._jvm.org.apache.kafka.common.TopicPartition(self._topic, partition)
            wanted.put(at, self._jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset))
        consumer.commitSync(wanted)


class JavaClients:
    """Clients of one version, in one JVM."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._jvm = gateway.jvm

    def member(self, bootstrap: str, group: str, topic: str, **settings: str) -> JavaMember:
        """A consumer that joins; underscores in `settings` stand for dots. Close it."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return JavaMember(
            self._jvm,
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "key.deserializer": f"{_BYTES}Deserializer",
                "value.deserializer": f"{_BYTES}Deserializer",
                "enable.auto.commit": "false",
                "heartbeat.interval.ms": "200",
                **given,
            },
            topic,
        )

    #: Exception of a call.
    error = Py4JJavaError

    def consumer(self, bootstrap: str, group: str, topic: str, settings: Mapping[str, str]) -> Any:
        """A `KafkaConsumer` that is subscribed to a topic, for one thread. Close it."""
        given = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false", **settings}
        given |= {f"{part}.deserializer": f"{_BYTES}Deserializer" for part in ("key", "value")}
        consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(_properties(self._jvm, given))
        consumer.subscribe(self.list_of(topic))
        return consumer

    def groups(self, bootstrap: str) -> dict[str, tuple[str, str]]:
        """Group → type and state of the groups that a broker lists and describes, by clients of 4.1 and later.

        A broker lists what it has loaded, also from partitions of the topic of offsets that do not speak for a group any more.
        It describes the group that clients reach.
        """
        admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(_properties(self._jvm, {"bootstrap.servers": bootstrap}))
        found: dict[str, tuple[str, str]] = {}
        try:
            for each in list(admin.listGroups().all().get()):
                group, kind = each.groupId(), each.type().get().toString()
                described = getattr(admin, f"describe{kind}Groups")(self.list_of(group)).describedGroups().get(group)
                try:
                    group_now = described.get()
                except Py4JJavaError as error:
                    if error.java_exception.getCause().getClass().getSimpleName() != "GroupIdNotFoundException":
                        raise
                else:
                    state = (group_now.state() if kind == "Classic" else group_now.groupState()).toString()
                    # of streams groups, a description instead of the error
                    if state != "Dead":
                        found[group] = (kind, state)
        finally:
            admin.close()
        return found

    def message(self, name: str) -> Any:
        """A new object of Kafka's generated messages, such as `ShareGroupHeartbeatRequestData`."""
        return attrgetter(name)(self._jvm.org.apache.kafka.common.message)()

    def message_bytes(self, message: Any, version: int) -> bytes:
        """A message in a version, as a request has it after its header."""
        formats = self._jvm.org.apache.kafka.common.protocol
        cache, size = formats.ObjectSerializationCache(), formats.MessageSizeAccumulator()
        message.addSize(size, cache, version)
        buffer = self._jvm.java.nio.ByteBuffer.allocate(size.totalSize())
        message.write(formats.ByteBufferAccessor(buffer), cache, version)
        return bytes(buffer.array())

    def offsets(self, topic: str, offsets: Mapping[int, int]) -> Any:
        """A `java.util.Map` of partitions of a topic to offsets, for `commitSync`."""
        wanted = self._jvm.java.util.HashMap()
        for partition, offset in offsets.items():
            at = self._jvm.org.apache.kafka.common.TopicPartition(topic, partition)
            wanted.put(at, self._jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset))
        return wanted

    def list_of(self, *items: Any) -> Any:
        """A `java.util.List`."""
        return self._jvm.java.util.List.of(*items)

    def milliseconds(self, number: int) -> Any:
        """A `java.time.Duration`."""
        return self._jvm.java.time.Duration.ofMillis(number)

    def produce(self, bootstrap: str, topic: str, value: bytes) -> str:
        """Send one record and wait: the class of the exception that it ends with, or ""."""
        settings = {"bootstrap.servers": bootstrap, "max.block.ms": "60000", "retries": "3"}
        settings |= {f"{part}.serializer": f"{_BYTES}Serializer" for part in ("key", "value")}
        producer = self._jvm.org.apache.kafka.clients.producer.KafkaProducer(_properties(self._jvm, settings))
        try:
            producer.send(self._jvm.org.apache.kafka.clients.producer.ProducerRecord(topic, value)).get()
        except Py4JJavaError as error:
            return str(error.java_exception.getCause().getClass().getSimpleName())
        finally:
            producer.close()
        return ""

    @contextmanager
    def producer(self, bootstrap: str, **settings: str) -> Iterator["JavaProducer"]:
        """A producer, closed at the end; underscores in `settings` stand for dots."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        given |= {"bootstrap.servers": bootstrap, "max.block.ms": "60000"}
        given |= {f"{part}.serializer": f"{_BYTES}Serializer" for part in ("key", "value")}
        producer = self._jvm.org.apache.kafka.clients.producer.KafkaProducer(_properties(self._jvm, given))
        try:
            if "transactional.id" in given:
                producer.initTransactions()
            yield JavaProducer(self._jvm, producer)
        finally:
            producer.close()

    def read(self, bootstrap: str, topic: str, isolation: str) -> list[bytes]:
        """The values of partition 0 of a topic, up to its end."""
        consumer, at = self._assigned(bootstrap, topic, isolation)
        values: list[bytes] = []
        try:
            consumer.seekToBeginning(self.list_of(at))
            end = consumer.endOffsets(self.list_of(at)).get(at)
            while consumer.position(at) < end:
                records = consumer.poll(self._jvm.java.time.Duration.ofMillis(_POLL_MS)).iterator()
                while records.hasNext():
                    values.append(bytes(records.next().value()))
        finally:
            consumer.close()
        return values

    def read_and_commit(self, bootstrap: str, group: str, topic: str, count: int) -> None:
        """Read that many committed records of partition 0, poll on for a moment, and commit the position."""
        consumer, at = self._assigned(bootstrap, topic, "read_committed", {"group.id": group})
        try:
            consumer.seekToBeginning(self.list_of(at))
            read = 0
            while read < count:
                read += consumer.poll(self._jvm.java.time.Duration.ofMillis(_POLL_MS)).count()
            for _ in range(5):
                consumer.poll(self._jvm.java.time.Duration.ofMillis(_POLL_MS))
            consumer.commitSync()
        finally:
            consumer.close()

    @contextmanager
    def reader(self, bootstrap: str, topic: str, partitions: int) -> Iterator[Callable[[], list[bytes]]]:
        """A consumer of all partitions from their beginning, closed at the end; a call polls once and returns the values."""
        settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        settings |= {f"{part}.deserializer": f"{_BYTES}Deserializer" for part in ("key", "value")}
        consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(_properties(self._jvm, settings))
        places = self._jvm.java.util.ArrayList()
        for number in range(partitions):
            places.add(self._jvm.org.apache.kafka.common.TopicPartition(topic, number))
        consumer.assign(places)

        def poll() -> list[bytes]:
            records = consumer.poll(self._jvm.java.time.Duration.ofMillis(_POLL_MS)).iterator()
            values: list[bytes] = []
            while records.hasNext():
                values.append(bytes(records.next().value()))
            return values

        try:
            yield poll
        finally:
            consumer.close()

    def end_offset(self, bootstrap: str, topic: str) -> int:
        """The end of partition 0 of a topic."""
        consumer, at = self._assigned(bootstrap, topic, "read_uncommitted")
        try:
            return int(consumer.endOffsets(self.list_of(at)).get(at))
        finally:
            consumer.close()

    def _assigned(self, bootstrap: str, topic: str, isolation: str, more: Mapping[str, str] | None = None) -> tuple[Any, Any]:
        settings = {"bootstrap.servers": bootstrap, "isolation.level": isolation, "enable.auto.commit": "false", **(more or {})}
        settings |= {f"{part}.deserializer": f"{_BYTES}Deserializer" for part in ("key", "value")}
        consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(_properties(self._jvm, settings))
        at = self._jvm.org.apache.kafka.common.TopicPartition(topic, 0)
        consumer.assign(self.list_of(at))
        return consumer, at


class JavaProducer:
    """A `KafkaProducer`: a call sends one record, waits, and returns its offset. Raises the exception of the client."""

    def __init__(self, jvm: Any, producer: Any) -> None:
        self._jvm = jvm
        self._producer = producer

    def __call__(self, topic: str, value: bytes) -> int:
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord(topic, value)
        return int(self._producer.send(record).get().offset())

    @contextmanager
    def transaction(self, *, aborts: bool) -> Iterator[None]:
        """A transaction around the calls in the context."""
        self._producer.beginTransaction()
        yield
        (self._producer.abortTransaction if aborts else self._producer.commitTransaction)()


def client_jars(version: str, progress: Progress | None = None) -> Path:
    """The folder with the jars of a release's clients."""
    dependencies = (f"org.apache.kafka:kafka-clients:{version}", _LOGGING)
    return resolved_jars(f"kafka-clients-{version}", dependencies, progress=progress)


@contextmanager
def java_clients(version: str) -> Iterator[JavaClients]:
    """Clients of a Kafka release. The JVM ends with the context."""
    jars = client_jars(version)
    py4j = next(jar for jar in spark_jars() if jar.name.startswith("py4j-"))
    port, token, process = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{jars}/*",
        javaopts=list(_JVM),
        java_path=java_executable(),
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        with _py4j_errors():
            yield JavaClients(gateway)
    finally:
        gateway.shutdown()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait(PATIENCE_SECONDS)


@contextmanager
def _py4j_errors() -> Iterator[None]:
    """Errors of Java as py4j has them: a Spark session of this process makes py4j look up classes of Spark for each of them."""
    of_spark = java_gateway.get_return_value
    java_gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        java_gateway.get_return_value = of_spark


def _properties(jvm: Any, settings: Mapping[str, str]) -> Any:
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        properties.setProperty(name, value)
    return properties
