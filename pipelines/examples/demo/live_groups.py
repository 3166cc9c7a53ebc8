"""Groups whose members join, leave and crash until the demo ends: the page moves."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from random import Random

from coordinator_core.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.service.net.addresses import ListenAddress
from pipelines.examples.demo.members import Members
from pipelines.examples.demo.steps import TOPICS

_MOST_MEMBERS = 4
_PAUSE_SECONDS = (2.0, 8.0)
#: Share of the members that crash instead of leaving.
_CRASHES = 0.3

#: Group → its topics and assignor.
_GROUPS: Mapping[str, tuple[tuple[str, ...], Assignor]] = {
    "checkout": (("orders", "payments"), CooperativeStickyAssignor()),
    "fraud-check": (("payments",), RangeAssignor()),
    "recommendations": (("clicks", "orders"), CooperativeStickyAssignor()),
}


class LiveGroups:
    """Drives members of the coordinator at `server`. `ends` has the log ends, `random` decides."""

    def __init__(self, server: ListenAddress, ends: Callable[[TopicPartition], int], random: Random) -> None:
        self._server = server
        self._ends = ends
        self._random = random
        self._numbers = count(1)
        self._names: dict[str, list[str]] = {group: [] for group in _GROUPS}

    async def run(self) -> None:
        """Run until the task is cancelled; then all members leave."""
        members = Members(self._server, TOPICS, self._ends)
        try:
            for group in _GROUPS:
                for _ in range(2):
                    self._join(members, group)
            while True:
                await asyncio.sleep(self._random.uniform(*_PAUSE_SECONDS))
                await self._change(members, self._random.choice(tuple(_GROUPS)))
        finally:
            await asyncio.gather(members.leave_all(), return_exceptions=True)

    async def _change(self, members: Members, group: str) -> None:
        names = self._names[group]
        if len(names) < 2 or (len(names) < _MOST_MEMBERS and self._random.random() < 0.5):
            self._join(members, group)
            return
        name = names.pop(self._random.randrange(len(names)))
        if self._random.random() < _CRASHES:
            await members.crash(name)
        else:
            await members.leave(name)

    def _join(self, members: Members, group: str) -> None:
        topics, assignor = _GROUPS[group]
        name = f"{group}-{next(self._numbers)}"
        self._names[group].append(name)
        members.join(name, group, topics, assignor)
