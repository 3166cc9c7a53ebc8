"""Faults of nodes, brokers and the network between them: drawn with a seed, run one after another, with the time of each."""

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cut_connections import Cut
from shared_log import COUNT, SharedLog

_NUMBERS = range(1, COUNT + 1)
#: Between a fault's end and the next fault; a node or broker is away; a cut lasts.
_PAUSE_SECONDS, _AWAY_SECONDS, _CUT_SECONDS = (1.0, 6.0), (0.0, 8.0), (2.0, 15.0)
#: Longer than `node_session_timeout_ms`.
_FROZEN_SECONDS = (8.0, 15.0)


class Kind(StrEnum):
    KILL_NODE = "node killed"
    KILL_BROKER = "broker killed"
    KILL_BOTH = "node and broker killed"
    RESTART_NODES = "rolling restart of the nodes"
    RESTART_BROKERS = "rolling restart of the brokers"
    CUT = "node cut off from a broker"
    ISOLATE = "node cut off from all brokers"
    FREEZE = "node frozen"


#: Half of the faults are kills.
_OFTEN = (Kind.KILL_NODE, Kind.KILL_BROKER, Kind.KILL_NODE, Kind.KILL_BROKER, Kind.KILL_BOTH, Kind.CUT, Kind.ISOLATE, Kind.FREEZE)
_SELDOM = (Kind.RESTART_NODES, Kind.RESTART_BROKERS)


@dataclass
class Fault:
    """A fault that has begun `at` this time, in seconds. `groups` are those of the nodes that it hit."""

    kind: Kind
    what: str
    at: float
    groups: Sequence[str] = ()
    until: float = field(default=0.0)


class Faults:
    """Runs faults against the processes of `at`; `groups` are those of the members."""

    def __init__(self, at: SharedLog, groups: Sequence[str], seed: int) -> None:
        self.done: list[Fault] = []
        self._at = at
        self._groups = tuple(groups)
        self._draw = random.Random(seed)

    def run(self, count: int, report: Callable[[Fault], None]) -> None:
        """Run this number of faults, each kind in turn in a drawn order."""
        kinds: list[Kind] = []
        has_restarts = True
        while len(kinds) < count:
            more = [*_OFTEN, *(_SELDOM if has_restarts else ())]
            self._draw.shuffle(more)
            kinds += more
            has_restarts = not has_restarts
        for kind in kinds[:count]:
            time.sleep(self._draw.uniform(*_PAUSE_SECONDS))
            self._at.start_ended_nodes()
            fault = self._run(kind)
            fault.until = time.time()
            report(fault)

    def _run(self, kind: Kind) -> Fault:
        node, broker = self._draw.choice(_NUMBERS), self._draw.choice(_NUMBERS)
        groups = self._at.groups_of(node, self._groups)
        match kind:
            case Kind.KILL_NODE:
                return self._kill([node], [], kind, groups)
            case Kind.KILL_BROKER:
                return self._kill([], [broker], kind, ())
            case Kind.KILL_BOTH:
                return self._kill([node], [broker], kind, groups)
            case Kind.RESTART_NODES:
                return self._restart_nodes(kind)
            case Kind.RESTART_BROKERS:
                return self._restart_brokers(kind)
            case Kind.CUT:
                return self._cut(node, [broker], self._draw.choice(list(Cut)), kind, groups)
            case Kind.ISOLATE:
                return self._cut(node, _NUMBERS, self._draw.choice(list(Cut)), kind, groups)
            case Kind.FREEZE:
                return self._freeze(node, kind, groups)

    def _begin(self, kind: Kind, what: str, groups: Sequence[str] = ()) -> Fault:
        fault = Fault(kind, what, time.time(), groups)
        self.done.append(fault)
        return fault

    def _kill(self, nodes: Sequence[int], brokers: Sequence[int], kind: Kind, groups: Sequence[str]) -> Fault:
        killed = [*(f"node {each}" for each in nodes), *(f"broker {each}" for each in brokers)]
        fault = self._begin(kind, " and ".join(killed), groups)
        for each in nodes:
            self._at.nodes[each].kill()
        for each in brokers:
            self._at.cluster.brokers[each - 1].kill()
        time.sleep(self._draw.uniform(*_AWAY_SECONDS))
        for each in brokers:
            self._at.start_broker(each)
        for each in nodes:
            self._at.start_node(each)
        return fault

    def _restart_nodes(self, kind: Kind) -> Fault:
        fault = self._begin(kind, "nodes 1–3")
        for each in _NUMBERS:
            self._at.nodes[each].stop()
            self._at.start_node(each)
            time.sleep(self._draw.uniform(*_PAUSE_SECONDS))
        return fault

    def _restart_brokers(self, kind: Kind) -> Fault:
        fault = self._begin(kind, "brokers 1–3")
        for each in _NUMBERS:
            self._at.cluster.brokers[each - 1].stop()
            self._at.start_broker(each)
            time.sleep(self._draw.uniform(*_PAUSE_SECONDS))
        return fault

    def _cut(self, node: int, brokers: Sequence[int], what: Cut, kind: Kind, groups: Sequence[str]) -> Fault:
        ports = self._at.links_of(node, brokers)
        fault = self._begin(kind, f"node {node}, brokers {', '.join(map(str, brokers))}: {what}", groups)
        self._at.links.cut(ports, what)
        time.sleep(self._draw.uniform(*_CUT_SECONDS))
        self._at.links.heal(ports)
        return fault

    def _freeze(self, node: int, kind: Kind, groups: Sequence[str]) -> Fault:
        fault = self._begin(kind, f"node {node}", groups)
        pid = self._at.nodes[node].pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self._draw.uniform(*_FROZEN_SECONDS))
        os.kill(pid, signal.SIGCONT)
        return fault
