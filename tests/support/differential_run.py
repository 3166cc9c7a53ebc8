"""Sends the requests of a story to two coordinators in lockstep, and compares every field of their responses."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from differential_draws import PARTITIONS, TIMESTAMP_MS
from differential_side import Side, Step
from differential_steps import Story
from eventually import equal_to, eventually

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol import apis
from coordinator_core.protocol.error_code import ErrorCode

STEPS = 60
#: Requests that may wait for other members.
_PARKING = {apis.JOIN_GROUP, apis.SYNC_GROUP}
_PARKED_SECONDS, _SETTLE_SECONDS, _LIMIT_SECONDS = 0.25, 0.05, 10.0
_STUCK_SECONDS = 5.0
#: Errors of a coordinator that is still busy with an earlier request, or with its start.
_BUSY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
_BUSY_TRIES = 6
#: Actor of the harness' own requests.
_HARNESS = -1
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Not answered by one side, and answered by the other.
UNANSWERED = {"connection": "no response"}


class Difference(NamedTuple):
    """Values of a field on both sides; list positions are left out of the path."""

    seed: int
    number: int
    step: Step
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        where = f"seed {self.seed}, request {self.number}: {self.step}"
        return f"{where}\n    {self.path}: broker {self.theirs!r}, Grouplake {self.ours!r}"


@dataclass
class Names:
    """Numbers for the ids that one side has given out, in the order in which they are seen."""

    side: Side
    _seen: dict[Any, int]

    def member(self, value: str, *, is_new: bool) -> str:
        """Members of a list have no common order, so only a member's own response gives it a number."""
        return self.of("member", value) if is_new or self.knows("member", value) else "<member>"

    def knows(self, kind: str, value: Any) -> bool:
        return (kind, value) in self._seen

    def of(self, kind: str, value: Any) -> str:
        number = sum(each == kind for each, _ in self._seen)
        return f"<{kind} {self._seen.setdefault((kind, value), number)}>"


class Comparison:
    """Both sides during one seed."""

    def __init__(self, seed: int, versions: Mapping[int, range], theirs: Side, ours: Side) -> None:
        self.seed = seed
        self.sides = (theirs, ours)
        self.story = Story(seed, versions)
        self.differences: list[Difference] = []
        self._names = [Names(side, {}) for side in self.sides]
        self._number = 0
        #: The requests in progress on both sides.
        self._parked: dict[int, Step] = {}

    def run(self) -> list[Difference]:
        """Send all requests; stop where the states differ: one side does not answer, or groups have different leaders."""
        try:
            for side in self.sides:
                self._create_topic(side)
            for self._number in range(STEPS):
                if len(self._parked) == 4:
                    break
                step = self.story.next_step(frozenset(self._parked))
                if not self._send(step):
                    break
        finally:
            for side in self.sides:
                side.close()
        return self.differences

    def _create_topic(self, side: Side) -> None:
        topic = {"name": self.story.topic, "num_partitions": PARTITIONS, "replication_factor": 1}
        body = {"topics": [topic | {"assignments": [], "configs": []}], "timeout_ms": 10_000, "validate_only": False}
        (made,) = side.ask(Step(_HARNESS, apis.CREATE_TOPICS, 7, body))["topics"]
        assert made["error_code"] == 0, made
        side.bindings.clear()
        side.bindings[f"topic {self.story.topic}"] = made["topic_id"]
        request = {"key_type": 0, "coordinator_keys": [f"{self.story.prefix}g0"]}
        for kind in (0, 1):
            find = Step(_HARNESS, apis.FIND_COORDINATOR, 4, request | {"key_type": kind})
            eventually("a coordinator is found", partial(_error_of_coordinator, side, find), equal_to(0), pause_seconds=0.05)
        listed = Step(_HARNESS, apis.LIST_OFFSETS, 5, _end_of(self.story.topic))
        eventually("the topic has a leader", partial(_error_of_partition, side, listed), equal_to(0), pause_seconds=0.05)

    def _send(self, step: Step) -> bool:
        for side in self.sides:
            side.send(step)
        self._parked[step.actor] = step
        answers = self._collect(step)
        for side, found in zip(self.sides, answers, strict=True):
            for _ in range(_BUSY_TRIES):
                if step.actor not in found or not _is_busy(found[step.actor]):
                    break
                time.sleep(0.05)
                found[step.actor] = side.ask(step)
        goes_on = True
        for actor in sorted(answers[0].keys() | answers[1].keys()):
            theirs, ours = (found.get(actor, UNANSWERED) for found in answers)
            goes_on &= self._compare(self._parked.pop(actor), theirs, ours)
        self._await_markers(step)
        return goes_on

    def _collect(self, step: Step) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
        """Responses of both sides, once nothing more is to be expected."""
        found: tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]] = ({}, {})
        started = last = time.monotonic()
        while True:
            for side, answers in zip(self.sides, found, strict=True):
                new = side.receive(0.002)
                answers |= new
                last = time.monotonic() if new else last
            now = time.monotonic()
            theirs, ours = (side.waiting for side in self.sides)
            if now - started > _LIMIT_SECONDS:
                return found
            if theirs != ours:
                continue
            if not theirs or (now - last > _SETTLE_SECONDS and step.actor not in theirs):
                return found
            if step.api in _PARKING and step.actor in theirs and now - last > _PARKED_SECONDS:
                return found

    def _await_markers(self, step: Step) -> None:
        """Wait until a decided transaction is complete on both sides: offsets and records change with its markers.

        Or on neither: the markers of an epoch that a forged marker has fenced are refused for ever.
        """
        if step.api not in (apis.END_TXN, apis.INIT_PRODUCER_ID) or not step.body["transactional_id"]:
            return
        describe = Step(_HARNESS, apis.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [step.body["transactional_id"]]})
        started = time.monotonic()

        def complete() -> list[bool]:
            return [_is_complete(side, describe) for side in self.sides]

        def same(found: list[bool]) -> bool:
            return all(found) or (not any(found) and time.monotonic() - started > _STUCK_SECONDS)

        what = f"seed {self.seed}, request {self._number}, {step}: the transaction is complete on both sides or on neither"
        eventually(what, complete, same, pause_seconds=0.01)

    def _compare(self, step: Step, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
        normal = [self._normal(names, answer) for names, answer in zip(self._names, (theirs, ours), strict=True)]
        leaves = list(_leaves(step.api.name, *normal))
        self.differences += [Difference(self.seed, self._number, step, *leaf) for leaf in leaves]
        sides = tuple(zip(self.sides, (theirs, ours), strict=True))
        self.story.learn(step, ours if theirs.keys() == ours.keys() else {}, sides)
        has_other_leader = any(path == "JOIN_GROUP.leader" for path, _, _ in leaves)
        return (theirs == UNANSWERED) is (ours == UNANSWERED) and not has_other_leader

    def _normal(self, names: Names, answer: Mapping[str, Any], *, nested: bool = False) -> Any:
        # lists last: the ids in them are known by then
        ordered = sorted(answer.items(), key=lambda each: isinstance(each[1], list))
        return {key: self._value(names, key, value, nested=nested) for key, value in ordered}

    def _value(self, names: Names, key: str, value: Any, *, nested: bool) -> Any:
        """The value without what only this side can have: ids, its port, groups of other seeds."""
        if isinstance(value, Mapping):
            return self._normal(names, value, nested=True)
        if isinstance(value, (list, tuple)):
            if key in ("groups", "transaction_states"):
                value = [each for each in value if not isinstance(each, Mapping) or self._is_own(each)]
            if key == "active_producers":
                value = [each for each in value if names.knows("producer", each["producer_id"])]
            return sorted((self._value(names, "", each, nested=True) for each in value), key=repr)
        if isinstance(value, UUID):
            return "no id" if value == ZERO_UUID else names.of("uuid", value)
        if key == "producer_id" and isinstance(value, int) and value >= 0:
            return names.of("producer", value) if not nested or names.knows("producer", value) else "<producer>"
        if key == "port" and value == names.side.port:
            return "<port>"
        if key == "timestamp":
            # that of a marker is the time at which it was written
            return value if value <= TIMESTAMP_MS else "<time>"
        if key == "last_timestamp" or key.endswith("timestamp_ms") or key == "transaction_start_time_ms":
            return value if value < 0 else "<time>"
        if key == "records":
            return len(value or b"")
        if isinstance(value, str):
            return _UUID.sub(lambda found: names.member(found[0], is_new=key in ("member_id", "leader") and not nested), value)
        return value

    def _is_own(self, each: Mapping[str, Any]) -> bool:
        name = each.get("group_id", each.get("transactional_id", ""))
        return not _UUID.search(name) and (name == "" or name.startswith(self.story.prefix))


def common_versions(theirs: Side, ours: Side) -> dict[int, range]:
    """The versions of each API that both sides list."""
    found = []
    for side in (theirs, ours):
        listed = side.ask(Step(_HARNESS, apis.API_VERSIONS, 2, {}))["api_keys"]
        found.append({each["api_key"]: (each["min_version"], each["max_version"]) for each in listed})
    both = {key: zip(found[0][key], found[1][key], strict=True) for key in found[0].keys() & found[1].keys()}
    return {key: range(max(lowest), min(highest) + 1) for key, (lowest, highest) in sorted(both.items())}


def _end_of(topic: str) -> dict[str, Any]:
    places = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
    return {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic, "partitions": places}]}


def _error_of_coordinator(side: Side, find: Step) -> int:
    (found,) = side.ask(find)["coordinators"]
    return int(found["error_code"])


def _error_of_partition(side: Side, listed: Step) -> int:
    (topic,) = side.ask(listed)["topics"]
    (partition,) = topic["partitions"]
    return int(partition["error_code"])


def _is_complete(side: Side, describe: Step) -> bool:
    (found,) = side.ask(describe)["transaction_states"]
    return not found["transaction_state"].startswith("Prepare")


def _is_busy(answer: Mapping[str, Any]) -> bool:
    return any(code in _BUSY for code in error_codes(answer))


def error_codes(value: Any) -> Iterator[int]:
    """The error codes of a response, at every depth."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key == "error_code":
                yield each
            else:
                yield from error_codes(each)
    elif isinstance(value, list):
        for each in value:
            yield from error_codes(each)


def _leaves(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    """Fields that differ."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from _leaves(f"{path}.{key}", theirs.get(key), ours.get(key))
    elif isinstance(theirs, Sequence) and isinstance(ours, Sequence) and not isinstance(theirs, (str, bytes)):
        if len(theirs) != len(ours):
            yield path, theirs, ours
        else:
            for mine, other in zip(theirs, ours, strict=True):
                yield from _leaves(path, mine, other)
    elif theirs != ours:
        yield path, theirs, ours
