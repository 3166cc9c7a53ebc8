"""A whole coordinator in this process: listener, /health, /metrics, and logs in a folder."""

import asyncio
import io
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eventually import eventually_awaited
from patience import PATIENCE_SECONDS

from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.producers.rules import RULES
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.segment_log.topic_store import TopicStore
from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.node.event_log import EventLog
from coordinator_core.service.node.process import Addresses, serve
from coordinator_core.service.settings import ServiceSettings
from coordinator_core.service.transactions.producer_id_file import ProducerIdFile
from coordinator_core.service.transactions.transaction_service import TransactionLogConfig
from coordinator_core.transaction_coordinator.config import TransactionConfig

NO_TOPICS: Mapping[str, tuple[int, TopicConfig]] = MappingProxyType({})
HERE = ListenAddress("127.0.0.1", 0)


class Served:
    """A coordinator in this process, over logs of two partitions in `folder`, while `work` runs.

    `topics` have data: name → number of partitions and configs.
    """

    def __init__(self, folder: Path, topics: Mapping[str, tuple[int, TopicConfig]] = NO_TOPICS, **settings: Any) -> None:
        self.log = SegmentLog.open(folder, OFFSETS_TOPIC, 2, SegmentLogSettings())
        self.transaction_log = SegmentLog.open(folder, TRANSACTION_STATE_TOPIC, 2, SegmentLogSettings(), is_locked=True)
        self.store = TopicStore(folder, topics, RULES["4"], 86_400_000)
        self.address, self.admin = HERE, HERE
        self._settings = ServiceSettings(**{"drain_ms": 0, **settings})
        transactions = TransactionConfig(transaction_state_log_num_partitions=2)
        producer_ids = ProducerIdFile(folder, self._settings.node_id)
        self._transactions = TransactionLogConfig(self.transaction_log, transactions, producer_ids.allocate)
        self._events = io.StringIO()

    def run(self, work: Callable[["Served"], Awaitable[None]]) -> None:
        async def until(address: ListenAddress, admin: ListenAddress | None) -> str:
            assert admin is not None
            self.address, self.admin = address, admin
            await self.eventually("the partitions are loaded", lambda: "loading" not in self.health()[1]["status"])
            await work(self)
            return "the test is over"

        config = CoordinatorConfig(offsets_topic_num_partitions=2)
        events = EventLog(self._events, "debug")
        try:
            addresses = Addresses(HERE, admin=HERE)
            asyncio.run(serve(self.log, self.store, config, self._settings, addresses, events, until, self._transactions))
        finally:
            self.store.close_files()
            self.transaction_log.close()
            self.log.close()

    async def eventually(self, what: str, probe: Callable[[], Any]) -> None:
        """The probe runs in a thread: it may be a request to the service on this loop."""
        await eventually_awaited(what, lambda: asyncio.to_thread(probe))

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, self._events.getvalue().splitlines()) if line["event"] == name]

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=PATIENCE_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def health(self) -> tuple[int, dict[str, Any]]:
        code, text = self.get("/health")
        return code, json.loads(text)

    def metric(self, name: str) -> float:
        lines = self.get("/metrics")[1].splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"grouplake_coordinator_{name} "))
