"""Clients without members: each commits and deletes offsets, one request after the other, and knows which may be committed."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from client_codecs import ALL_CODECS

from coordinator_core.client import BrokerConnection, ClientError, ConnectionSettings, connect
from coordinator_core.client.group_client import Server
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import DeleteGroupRequest
from coordinator_core.protocol.offsets import (
    INVALID_OFFSET,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetToCommit,
)

_PARTITIONS = 4
_AGAIN_SECONDS = 0.05
_NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
#: In percent; the rest are commits.
_DELETED_OFFSETS, _DELETED_GROUPS = 15, 5


class OffsetClient:
    """A client with a group of its own.

    `possible` are the offsets that may be committed, INVALID_OFFSET for none: the last one acknowledged, and all sent since then
    without a response. `findings` lists any other offset found.
    """

    def __init__(self, server: Server, group: str, topic: str, seed: int, pause_seconds: float) -> None:
        self.group = group
        self.possible: dict[TopicPartition, set[int]] = {
            TopicPartition(topic, number): {INVALID_OFFSET} for number in range(_PARTITIONS)
        }
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []
        self.going = asyncio.Event()
        self.going.set()
        self.idle = asyncio.Event()
        self._server = server
        self._draw = Random(seed)
        self._pause_seconds = pause_seconds
        self._offset = 0

    async def run(self) -> None:
        """Send requests until cancelled. After a connection has broken, fetch and check the committed offsets first."""
        while True:
            try:
                connection = await connect(*self._server, ConnectionSettings(client_id=f"client-{self.group}", codecs=ALL_CODECS))
            except ClientError:
                await self._wait(_AGAIN_SECONDS)
                continue
            try:
                await self._look(connection)
                while True:
                    await self._wait(self._pause_seconds)
                    await self._act(connection)
            except ClientError:
                self.counts["disconnected"] += 1
            finally:
                connection.close()

    async def _wait(self, seconds: float) -> None:
        self.idle.set()
        await asyncio.sleep(seconds)
        await self.going.wait()
        self.idle.clear()

    async def _look(self, connection: BrokerConnection) -> None:
        while True:
            answer: Any = await connection.request(apis.OFFSET_FETCH, OffsetFetchRequest(self.group, tuple(self.possible)))
            if answer.error not in _NOT_YET:
                break
            await self._wait(_AGAIN_SECONDS)
        for partition, may_be in self.possible.items():
            found = answer.offsets[partition].offset
            if found not in may_be:
                self.findings.append(f"{self.group} {partition}: {found} is not in {sorted(may_be)}")
            self.possible[partition] = {found}
        self.counts["looks"] += 1

    async def _act(self, connection: BrokerConnection) -> None:
        chance = self._draw.randrange(100)
        if chance < _DELETED_GROUPS:
            await self._change(
                connection, apis.DELETE_GROUPS, DeleteGroupRequest(self.group), tuple(self.possible), INVALID_OFFSET
            )
            return
        partition = self._draw.choice(tuple(self.possible))
        if chance < _DELETED_GROUPS + _DELETED_OFFSETS:
            request = OffsetDeleteRequest(self.group, (partition,))
            await self._change(connection, apis.OFFSET_DELETE, request, (partition,), INVALID_OFFSET)
            return
        self._offset += 1
        commit = OffsetCommitRequest(self.group, {partition: OffsetToCommit(self._offset, metadata=f"{self._offset}")})
        await self._change(connection, apis.OFFSET_COMMIT, commit, (partition,), self._offset)

    async def _change(
        self, connection: BrokerConnection, api: AnyApi, request: Any, partitions: Sequence[TopicPartition], offset: int
    ) -> None:
        before = {partition: self.possible[partition] for partition in partitions}
        self.possible |= {partition: may_be | {offset} for partition, may_be in before.items()}
        answer: Any = await connection.request(api, request)
        errors = {answer.error} if hasattr(answer, "error") else set()
        errors |= set(answer.errors.values()) if hasattr(answer, "errors") else set()
        failed = errors - {ErrorCode.NONE}
        self.possible |= before if failed else {partition: {offset} for partition in partitions}
        self.counts[f"{api.name} {'/'.join(sorted(error.name for error in failed)) or 'NONE'}"] += 1
