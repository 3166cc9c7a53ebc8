"""Sampling of end offsets: from the request to the columns of the samples, of one real broker, and of the client alone."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from benchmarks.arguments import parser, short
from benchmarks.report import print_machine, print_table
from coordinator_core.health import END_OFFSETS_SCHEMA
from coordinator_core.sources import topic_offsets
from coordinator_core.sources.kafka_connection import KafkaConnection, Received, RequestFor, close_idle_connections
from coordinator_core.sources.topic_offsets import TopicOffsetsSampler
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.lag.sampling.sample_history import SampleHistory

_PARTITIONS_PER_TOPIC = 100
#: Small index files, and threads that create the folders of the partitions.
_PROPERTIES = {"log.index.size.max.bytes": "4096", "num.recovery.threads.per.data.dir": "2"}
_HEAP = ("-Xms1g", "-Xmx2g")
_WARM_UP = 3


class Seconds(NamedTuple):
    """Of one sample: wall-clock time and CPU time of this process, then CPU time of `SampleHistory.add`."""

    wall: float
    cpu: float
    history: float


def main(arguments: list[str] | None = None) -> None:
    # keys: partitions of the broker; records: partitions of the recorded responses
    given = parser(__doc__, records="100k", keys="10k", rounds=15).parse_args(arguments)
    print_machine()
    head = ("topic partitions", "of", "seconds", "of them CPU of the client", "history, CPU")
    recorded: list[Any] = []
    with PrivateBroker(properties=_PROPERTIES, jvm_arguments=_HEAP) as broker:
        wanted = _create(broker.bootstrap, given.keys)
        live = _sampled(broker.bootstrap, wanted, given.rounds)
        print_table(head, [_row(given.keys, "one broker", live)])
        with _Recorded() as recorded_responses:
            _sampler(broker.bootstrap).sample(wanted)
            recorded = recorded_responses.responses
        close_idle_connections()
    rows = []
    for partitions in (given.keys, *given.records):
        copies = _Copies(recorded, partitions // given.keys)
        with mock.patch.object(topic_offsets, "borrowed_connection", lambda *_, copies=copies: nullcontext(copies)):
            seconds = _sampled("127.0.0.1:1", copies.wanted, given.rounds)
        rows.append(_row(partitions, "recorded responses", seconds))
    print_table(head, rows)


def _row(partitions: int, source: str, seconds: Seconds) -> tuple[object, ...]:
    return (short(partitions), source, *(f"{each:.3f}" for each in seconds))


def _create(bootstrap: str, partitions: int) -> dict[str, Sequence[int]]:
    """Topics of 100 partitions, and wait until all of them have leaders that answer."""
    topics = range(partitions // _PARTITIONS_PER_TOPIC)
    wanted: dict[str, Sequence[int]] = {f"topic-{number:05}": range(_PARTITIONS_PER_TOPIC) for number in topics}
    names = list(wanted)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for first in range(0, len(names), 10):
        new = [NewTopic(name, _PARTITIONS_PER_TOPIC, 1) for name in names[first : first + 10]]
        for future in admin.create_topics(new, operation_timeout=120, request_timeout=120).values():
            future.result(120)
    while _sampler(bootstrap).sample(wanted)["reason"].null_count < partitions:
        time.sleep(1)
    return wanted


def _sampler(bootstrap: str) -> TopicOffsetsSampler:
    return TopicOffsetsSampler(f"kafka://{bootstrap}/__consumer_offsets", None, lambda: int(time.time() * 1000))


def _sampled(bootstrap: str, wanted: Mapping[str, Sequence[int]], rounds: int) -> Seconds:
    """The best of several samples, after some that the broker's JVM compiles in."""
    sampler, history = _sampler(bootstrap), SampleHistory(END_OFFSETS_SCHEMA.empty_table())
    found = []
    for _ in range(_WARM_UP + rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        samples = sampler.sample(wanted)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        assert samples["reason"].null_count == sum(map(len, wanted.values()))
        started = time.process_time()
        history.add(samples)
        found.append(Seconds(wall, cpu, time.process_time() - started))
    return Seconds(*(min(column) for column in zip(*found[_WARM_UP:], strict=True)))


class _Recorded(ExitStack):
    """Keeps the responses to a sampler."""

    def __init__(self) -> None:
        super().__init__()
        self.responses: list[Any] = []
        metadata, send_in_order = KafkaConnection.metadata, KafkaConnection.send_in_order

        def keep_metadata(connection: KafkaConnection, topics: Sequence[str] | None) -> Any:
            self.responses.append(metadata(connection, topics))
            return self.responses[-1]

        def keep_rounds(connection: KafkaConnection, rounds: Sequence[Mapping[int, RequestFor]], received: Received) -> None:
            def keep(number: int, answers: dict[int, Any]) -> None:
                self.responses.extend(answers.values())
                received(number, answers)

            send_in_order(connection, rounds, keep)

        self.enter_context(mock.patch.object(KafkaConnection, "metadata", keep_metadata))
        self.enter_context(mock.patch.object(KafkaConnection, "send_in_order", keep_rounds))


class _Copies:
    """Answers with recorded responses in which every topic appears several times.

    Requests are encoded and responses decoded, as with a broker.
    """

    def __init__(self, recorded: Sequence[Any], copies: int) -> None:
        self.wanted: dict[str, Sequence[int]] = {}
        self._decoders: list[Callable[[], Any]] = []
        for response in recorded:
            message = MetadataResponse if isinstance(response, MetadataResponse) else ListOffsetsResponse
            version, topics = response.API_VERSION, []
            for copy in range(copies):
                for topic in response.topics:
                    fields = {field: getattr(topic, field) for field in type(topic).fields}
                    topics.append(type(topic)(**{**fields, "name": f"{topic.name}-{copy}"}))
                    self.wanted[f"{topic.name}-{copy}"] = range(_PARTITIONS_PER_TOPIC)
            fields = {field: getattr(response, field) for field in message.fields}
            data = message(**{**fields, "topics": topics}).encode(version=version)
            self._decoders.append(partial(message[version].decode, data))
        self._next = 0

    def metadata(self, topics: Sequence[str] | None) -> Any:
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics or ()]
        MetadataRequest(topics=names).encode(version=12)
        return self._answer()

    def send_in_order(self, rounds: Sequence[Mapping[int, RequestFor]], received: Received) -> None:
        for number, requests in enumerate(rounds):
            for request in requests.values():
                message = request(None)
                assert isinstance(message, ListOffsetsRequest)
                message.encode(version=9)
            received(number, dict.fromkeys(requests, self._answer()))

    def _answer(self) -> Any:
        self._next += 1
        return self._decoders[(self._next - 1) % len(self._decoders)]()


if __name__ == "__main__":
    main()
