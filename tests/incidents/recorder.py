"""A thread that records the positions of groups as the broker reports them, several times a second."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from live_kafka import QUIET
from patience import LIMIT_SECONDS
from positions import Positions

#: Its methods have no types.
_SPECS: Any = OffsetSpec
_EVERY_SECONDS = 0.5
_REQUEST_SECONDS = 5
#: After a broker was paused, librdkafka sometimes leaves a future of a request unanswered for ever.
_ANSWER_SECONDS = _REQUEST_SECONDS + 2


class Recorder:
    """Fills `positions` until the context ends. `groups`: group → its topic; `topics`: topic → number of partitions."""

    def __init__(self, bootstrap: str, groups: Mapping[str, str], topics: Mapping[str, int]) -> None:
        self.positions = Positions()
        self._bootstrap = bootstrap
        self._admin = self._connected()
        self._readers: dict[str, Consumer] = {}
        self._groups = dict(groups)
        self._topics = dict(topics)
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Recorder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(LIMIT_SECONDS)
        for each in self._readers.values():
            each.close()

    def failure(self) -> str | None:
        """The reason why it records no more."""
        return None if self._failure is None else f"recorder: {self._failure!r}"

    def _run(self) -> None:
        try:
            while not self._closing.wait(_EVERY_SECONDS):
                try:
                    self._record()
                except (KafkaException, TimeoutError):
                    # the values before and after hold in between; a new client has the leaders of now
                    self._admin = self._connected()
        except BaseException as error:
            self._failure = error

    def _record(self) -> None:
        self._record_ends()
        for group, topic in self._groups.items():
            self._record_committed(group, topic)

    def _connected(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})

    def _record_ends(self) -> None:
        asked = time.time()
        wanted = {place: _SPECS.latest() for topic in self._topics for place in self._places(topic)}
        found = self._admin.list_offsets(wanted, request_timeout=_REQUEST_SECONDS)  # runs out: brokers are paused
        ends = {
            (place.topic, place.partition): future.result(_ANSWER_SECONDS).offset  # runs out: brokers are paused
            for place, future in found.items()
        }
        self.positions.add_ends(asked, time.time(), ends)

    def _record_committed(self, group: str, topic: str) -> None:
        asked = time.time()
        # not by the admin client: it ends the process at NOT_COORDINATOR (librdkafka#5040)
        reader = self._readers.get(group) or self._readers.setdefault(group, self._reader(group))
        found = reader.committed(self._places(topic), _ANSWER_SECONDS)  # runs out: the same
        known = {(each.topic, each.partition): each.offset if each.offset >= 0 else None for each in found}
        self.positions.add_committed(asked, time.time(), group, known)

    def _reader(self, group: str) -> Consumer:
        return Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET})

    def _places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for partition in range(self._topics[topic])]
