"""Clients without a group: they commit and delete offsets, one request after the other, and know what may be there."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from coordinator_core.client import BrokerConnection, ClientError, ConnectionSettings, connect
from coordinator_core.client.group_client import Address
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import DeleteGroupRequest
from coordinator_core.coordinator.messages.offsets import (
    INVALID_OFFSET,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetToCommit,
)
from coordinator_core.coordinator.messages.versions import ApiKey
from coordinator_core.state.offsets import TopicPartition

_PARTITIONS = 4
_AGAIN_SECONDS = 0.05
_NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
#: In a hundred; the rest are commits.
_DELETED_OFFSETS, _DELETED_GROUPS = 15, 5


class OffsetClient:
    """Has a group of its own. `possible` are the offsets that may be committed, INVALID_OFFSET for none: what was answered last,
    and whatever was sent since without an answer. `findings` tell of anything else."""

    def __init__(self, server: Address, group: str, topic: str, seed: int, pause_seconds: float) -> None:
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
        """Until it is cancelled. Whenever the connection breaks, it looks first what is there."""
        while True:
            try:
                connection = await connect(*self._server, ConnectionSettings(client_id=f"clerk-{self.group}"))
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
            answer: Any = await connection.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(self.group, tuple(self.possible)))
            if answer.error not in _NOT_YET:
                break
            await self._wait(_AGAIN_SECONDS)
        for place, may_be in self.possible.items():
            found = answer.offsets[place].offset
            if found not in may_be:
                self.findings.append(f"{self.group} {place}: {found} is not in {sorted(may_be)}")
            self.possible[place] = {found}
        self.counts["looks"] += 1

    async def _act(self, connection: BrokerConnection) -> None:
        chance = self._draw.randrange(100)
        if chance < _DELETED_GROUPS:
            await self._change(
                connection, ApiKey.DELETE_GROUPS, DeleteGroupRequest(self.group), tuple(self.possible), INVALID_OFFSET
            )
            return
        place = self._draw.choice(tuple(self.possible))
        if chance < _DELETED_GROUPS + _DELETED_OFFSETS:
            request = OffsetDeleteRequest(self.group, (place,))
            await self._change(connection, ApiKey.OFFSET_DELETE, request, (place,), INVALID_OFFSET)
            return
        self._offset += 1
        commit = OffsetCommitRequest(self.group, {place: OffsetToCommit(self._offset, metadata=f"{self._offset}")})
        await self._change(connection, ApiKey.OFFSET_COMMIT, commit, (place,), self._offset)

    async def _change(
        self, connection: BrokerConnection, api: ApiKey, request: Any, places: Sequence[TopicPartition], offset: int
    ) -> None:
        before = {place: self.possible[place] for place in places}
        self.possible |= {place: may_be | {offset} for place, may_be in before.items()}
        answer: Any = await connection.ask(api, request)
        errors = {answer.error} if hasattr(answer, "error") else set()
        errors |= set(answer.errors.values()) if hasattr(answer, "errors") else set()
        failed = errors - {ErrorCode.NONE}
        self.possible |= before if failed else {place: {offset} for place in places}
        self.counts[f"{api.name} {'/'.join(sorted(error.name for error in failed)) or 'NONE'}"] += 1
