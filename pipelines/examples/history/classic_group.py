"""The life of a classic group: members join and leave, and every rebalance is a record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator_core.codec.messages.classic import MemberMetadata
from pipelines.examples.history.assignment import Owned, balanced, by_topic, ranges
from pipelines.examples.history.log import ExampleLog, member

_COOPERATIVE = "cooperative-sticky"
#: Time from a cooperative rebalance that revokes partitions to the one that assigns them.
_SECOND_REBALANCE_MS = 3_100


@dataclass(frozen=True)
class _Member:
    host: str
    run: int
    instance: str | None


class ExampleClassicGroup:
    """A classic group. Methods are called in the order of their times. The name of a member is its client id."""

    def __init__(
        self,
        log: ExampleLog,
        name: str,
        partitions: Mapping[str, int],
        protocol: str = "range",
        *,
        generation: int = 0,
    ) -> None:
        self.name = name
        self.generation = generation
        self._log, self._partitions = log, partitions
        self._protocol = protocol
        self._members: dict[str, _Member] = {}
        self._runs: dict[str, int] = {}
        self._owned: Owned = {}

    def join(self, at: int, hosts: Mapping[str, str], *, sync_ms: int = 60, instances: bool = False) -> None:
        """Members, with their hosts, join; with `instances` their names are those of static members too."""
        for name, host in hosts.items():
            self._runs[name] = self._runs.get(name, 0) + 1
            self._members[name] = _Member(host, self._runs[name], name if instances else None)
        self._rebalance(at, sync_ms)

    def leave(self, at: int, *names: str, sync_ms: int = 60) -> None:
        """Members leave, or their sessions time out."""
        for name in names:
            del self._members[name]
        self._rebalance(at, sync_ms)

    def stop(self, at: int) -> None:
        """All members leave."""
        self.leave(at, *self._members)

    def replace(self, at: int, name: str, host: str) -> None:
        """A static member returns under a new member id, which causes no rebalance."""
        self._runs[name] += 1
        self._members[name] = replace(self._members[name], host=host, run=self._runs[name])
        self._write(at, self._owned, 0)

    def restart(self, at: int, name: str, host: str, *, down_ms: int = 20_000) -> None:
        """A member leaves and joins again."""
        self.leave(at, name)
        self.join(at + down_ms, {name: host}, sync_ms=900)

    def remove(self, at: int) -> None:
        """The group without members is deleted."""
        self._log.group_tombstone(self.name, at)

    def _rebalance(self, at: int, sync_ms: int) -> None:
        self.generation += 1
        names = list(self._members)
        if not names:
            self._owned = {}
            self._log.classic(self.name, self.generation, at, sync_ms=0)
            return
        if self._protocol != _COOPERATIVE:
            self._owned = ranges(self._partitions, names)
            self._write(at, self._owned, sync_ms)
            return
        target = balanced(self._partitions, self._owned, names)
        owner = {each: name for name, owned in self._owned.items() if name in target for each in owned}
        free = {name: [each for each in owned if owner.get(each, name) == name] for name, owned in target.items()}
        self._write(at, free, sync_ms)
        if free != target:
            self.generation += 1
            self._write(at + _SECOND_REBALANCE_MS, target, sync_ms)
        self._owned = target

    def _write(self, at: int, owned: Owned, sync_ms: int) -> None:
        members = [self._record(name, owned) for name in self._members]
        self._log.classic(self.name, self.generation, at, members, self._protocol, sync_ms=sync_ms)

    def _record(self, name: str, owned: Owned) -> MemberMetadata:
        found = self._members[name]
        assigned = by_topic(self._partitions, owned[name])
        return member(name, found.host, assigned, instance=found.instance, run=found.run)
