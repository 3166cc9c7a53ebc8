"""Random requests about groups, offsets, transactions and records of one seed, valid ones and invalid ones.

The story keeps what both sides have in common: generations, epochs, sequences. Ids that each side gives out itself are `Bound`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from differential_draws import ACTORS, PARTITIONS, TIMESTAMP_MS, UNKNOWN_PRODUCER, Body, Draws, Records
from differential_side import Bound, Side, Step

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi

#: Longer than a full run, within the limits of brokers: a timeout of an earlier seed would write records at a time of its own.
_LONG_MS = 840_000
#: `ConsumerProtocolSubscription` v0 of no topic, and `ConsumerProtocolAssignment` v0 of no partition.
_NO_TOPICS = bytes(2) + bytes(4) + b"\xff\xff\xff\xff"


class Story(Draws):
    """The requests of one seed; `learn` takes what both sides have answered."""

    def __init__(self, seed: int, versions: Mapping[int, range]) -> None:
        """`versions` are those that both sides serve, by API."""
        super().__init__(seed)
        self._versions = versions
        self._kinds: Sequence[tuple[AnyApi, int, Callable[[int, int], Body | None]]] = [
            kind for kind in self._table() if kind[0].number in self._versions
        ]

    def _table(self) -> list[tuple[AnyApi, int, Callable[[int, int], Body | None]]]:
        """APIs with their weights."""
        return [
            (apis.FIND_COORDINATOR, 2, self._find_coordinator),
            (apis.JOIN_GROUP, 14, self._join_group),
            (apis.SYNC_GROUP, 10, self._sync_group),
            (apis.HEARTBEAT, 5, self._heartbeat),
            (apis.LEAVE_GROUP, 4, self._leave_group),
            (apis.OFFSET_COMMIT, 10, self._offset_commit),
            (apis.OFFSET_FETCH, 7, self._offset_fetch),
            (apis.OFFSET_DELETE, 4, self._offset_delete),
            (apis.DESCRIBE_GROUPS, 5, self._describe_groups),
            (apis.DELETE_GROUPS, 2, lambda _, __: {"groups_names": self._some([self._group(), self._group()])}),
            (apis.LIST_GROUPS, 2, self._list_groups),
            (apis.CONSUMER_GROUP_DESCRIBE, 1, self._consumer_group_describe),
            (apis.INIT_PRODUCER_ID, 9, self._init_producer_id),
            (apis.ADD_PARTITIONS_TO_TXN, 7, self._add_partitions_to_txn),
            (apis.ADD_OFFSETS_TO_TXN, 5, self._add_offsets_to_txn),
            (apis.TXN_OFFSET_COMMIT, 8, self._txn_offset_commit),
            (apis.END_TXN, 8, self._end_txn),
            (apis.WRITE_TXN_MARKERS, 3, self._write_txn_markers),
            (
                apis.DESCRIBE_TRANSACTIONS,
                3,
                lambda _, __: {"transactional_ids": self._some([self._id(), self._id()])},
            ),
            (apis.LIST_TRANSACTIONS, 1, self._list_transactions),
            (apis.PRODUCE, 14, self._produce),
            (apis.FETCH, 8, self._fetch),
            (apis.LIST_OFFSETS, 4, self._list_offsets),
            (apis.DESCRIBE_PRODUCERS, 2, self._describe_producers),
        ]

    def next_step(self, busy: frozenset[int]) -> Step:
        """A request of an actor that has none in progress."""
        while True:
            actor = self.random.choice([actor for actor in range(ACTORS) if actor not in busy])
            weights = [weight for _, weight, _ in self._kinds]
            api, _, make = self.random.choices(self._kinds, weights)[0]
            version = self.random.choice(self._versions[api.number])
            body = make(actor, version)
            if body is not None:
                return Step(actor, api, version, body)

    # ---- what both sides have answered

    def learn(self, step: Step, answer: Mapping[str, Any], sides: Sequence[tuple[Side, Mapping[str, Any]]]) -> None:
        """Note generations, epochs and sequences of an answer, and each side's own ids."""
        if step.api is apis.JOIN_GROUP and answer.get("member_id"):
            group = step.body["group_id"]
            if answer["error_code"] in (0, 79):
                for side, own in sides:
                    side.bindings[f"member {group} {step.actor}"] = own["member_id"]
            if answer["error_code"] == 0:
                self._generations[group] = answer["generation_id"]
        if step.api is apis.INIT_PRODUCER_ID and answer.get("error_code") == 0:
            self._new_producer(step.body["transactional_id"] or "idempotent", answer, sides)
        if step.api is apis.END_TXN and answer.get("error_code") == 0 and answer.get("producer_id", -1) != -1:
            self._new_producer(step.body["transactional_id"], answer, sides)
        if step.api is apis.PRODUCE:
            self._advance_sequences(step, answer)

    def _new_producer(self, name: str, answer: Mapping[str, Any], sides: Sequence[tuple[Side, Mapping[str, Any]]]) -> None:
        self._epochs[name] = answer["producer_epoch"]
        for side, own in sides:
            side.bindings[f"producer {name}"] = own["producer_id"]
        for partition in range(PARTITIONS):
            self._sequences[name, partition] = 0

    def _advance_sequences(self, step: Step, answer: Mapping[str, Any]) -> None:
        for topic in answer.get("responses") or ():
            for each in topic["partition_responses"]:
                records = step.body["topic_data"][0]["partition_data"][0]["records"]
                if each["error_code"] == 0 and isinstance(records, Records) and records.name:
                    self._sequences[records.name, each["index"]] = records.sequence + records.count

    # ---- groups

    def _find_coordinator(self, _actor: int, version: int) -> Body:
        keys = self._some([self._group(), self._id()])
        kind = self.random.choice([0, 0, 1, 1, 2, -1, 77])
        if self._has(apis.FIND_COORDINATOR, version, "keys"):
            return {"key_type": kind, "coordinator_keys": keys}
        return {"key": keys[0], **({"key_type": kind} if version >= 1 else {})}

    def _join_group(self, actor: int, version: int) -> Body:
        group = self._group()
        names = self.random.choice([["range"]] * 6 + [["range", "roundrobin"], ["roundrobin"], []])
        body: Body = {
            "group_id": group,
            "session_timeout_ms": self.random.choice([_LONG_MS] * 10 + [1, 10**8, -1]),
            "member_id": self._member(group, actor),
            "protocol_type": self.random.choice(["consumer"] * 12 + ["connect", ""]),
            "protocols": [{"name": name, "metadata": _NO_TOPICS} for name in names],
        }
        if version >= 1:
            body["rebalance_timeout_ms"] = _LONG_MS
        if version >= 5:
            body["group_instance_id"] = self._instance(actor)
        return body

    def _sync_group(self, actor: int, version: int) -> Body:
        group = self._group()
        assigned = [Bound(f"member {group} {each}", f"nobody-{each}") for each in range(ACTORS)] if self._chance(0.6) else []
        body: Body = {
            "group_id": group,
            "generation_id": self._generation(group),
            "member_id": self._member(group, actor),
            "assignments": [{"member_id": each, "assignment": bytes([number])} for number, each in enumerate(assigned)],
        }
        if version >= 3:
            body["group_instance_id"] = self._instance(actor)
        if version >= 5:
            body["protocol_type"] = self.random.choice(["consumer"] * 5 + [None, "connect"])
            body["protocol_name"] = self.random.choice(["range"] * 5 + [None, "sticky"])
        return body

    def _heartbeat(self, actor: int, version: int) -> Body:
        group = self._group()
        body = {"group_id": group, "generation_id": self._generation(group), "member_id": self._member(group, actor)}
        return body | ({"group_instance_id": self._instance(actor)} if version >= 3 else {})

    def _leave_group(self, actor: int, version: int) -> Body:
        group = self._group()
        if not self._has(apis.LEAVE_GROUP, version, "members"):
            return {"group_id": group, "member_id": self._member(group, actor)}
        leaving = [
            {"member_id": self._member(group, each), "group_instance_id": self._instance(each)}
            for each in {actor, self.random.randrange(ACTORS)}
        ]
        return {"group_id": group, "members": leaving[: self.random.choice([1, 1, 2])]}

    def _describe_groups(self, _actor: int, version: int) -> Body:
        groups = self._some([self._group(), self._group()])
        return {"groups": groups} | ({"include_authorized_operations": self._chance(0.4)} if version >= 3 else {})

    def _consumer_group_describe(self, _actor: int, _version: int) -> Body:
        return {"group_ids": self._some([self._group(), self._group()]), "include_authorized_operations": self._chance(0.4)}

    def _list_groups(self, _actor: int, version: int) -> Body:
        body: Body = {}
        if version >= 4:
            body["states_filter"] = self.random.choice([[], ["Stable"], ["empty", "dead"], ["nonsense"]])
        if version >= 5:
            body["types_filter"] = self.random.choice([[], ["classic"], ["Consumer"], ["nonsense"]])
        return body

    # ---- offsets

    def _offsets(self, with_epochs: bool, has_ids: bool = False) -> list[Body]:
        _, topic = self._named_topic(has_ids)
        partitions = dict.fromkeys([self._partition() for _ in range(self.random.choice([0, 1, 1, 2, 3]))])
        committed = []
        for partition in partitions:
            metadata = self.random.choice(["", "m", None, "x" * 4097])
            each: Body = {"partition_index": partition, "committed_offset": self.random.choice([7, 0, -1, 10**12])}
            each |= {"committed_metadata": metadata}
            committed.append(each | ({"committed_leader_epoch": self.random.choice([-1, 0, 5])} if with_epochs else {}))
        return [topic | {"partitions": committed}] if committed or self._chance(0.5) else []

    def _offset_commit(self, actor: int, version: int) -> Body:
        group = self._group()
        is_simple = self._chance(0.5)
        body: Body = {
            "group_id": group,
            "generation_id_or_member_epoch": -1 if is_simple else self._generation(group),
            "member_id": "" if is_simple else self._member(group, actor),
            "topics": self._offsets(version >= 6, self._has(apis.OFFSET_COMMIT, version, "topic_id")),
        }
        if 2 <= version <= 4:
            body["retention_time_ms"] = -1
        if version >= 7:
            body["group_instance_id"] = None if is_simple else self._instance(actor)
        return body

    def _offset_fetch(self, _actor: int, version: int) -> Body:
        stable = {"require_stable": self._chance(0.4)} if version >= 7 else {}
        if not self._has(apis.OFFSET_FETCH, version, "groups"):
            topics = None if version >= 2 and self._chance(0.3) else self._wanted(has_ids=False)
            return {"group_id": self._group(), "topics": topics, **stable}
        has_ids = self._has(apis.OFFSET_FETCH, version, "topic_ids")
        groups = [
            {"group_id": group, "topics": None if self._chance(0.3) else self._wanted(has_ids=has_ids)}
            | ({"member_id": None, "member_epoch": -1} if version >= 9 else {})
            for group in self._some([self._group(), self._group()])
        ]
        return {"groups": groups, **stable}

    def _wanted(self, *, has_ids: bool) -> list[Body]:
        _, topic = self._named_topic(has_ids)
        return [topic | {"partition_indexes": [self._partition()]}] if self._chance(0.9) else []

    def _offset_delete(self, _actor: int, _version: int) -> Body:
        partitions = dict.fromkeys([self._partition(), self._partition()])
        topic = {"name": self._topic_name(), "partitions": [{"partition_index": partition} for partition in partitions]}
        return {"group_id": self._group(), "topics": [topic] if self._chance(0.9) else []}

    # ---- transactions

    def _init_producer_id(self, _actor: int, version: int) -> Body:
        name = self.random.choice([self._id(), self._id(), None])
        body: Body = {
            "transactional_id": name,
            "transaction_timeout_ms": self.random.choice([_LONG_MS] * 10 + [0, -1, 10**9]),
        }
        if version >= 3:
            producer, epoch = self._producer(name) if self._chance(0.5) else (-1, -1)
            body |= {"producer_id": producer, "producer_epoch": epoch}
        return body

    def _add_partitions_to_txn(self, _actor: int, version: int) -> Body:
        name = self._id()
        producer, epoch = self._producer(name)
        partitions = list(dict.fromkeys([self._partition(), self._partition()]))
        topics = [{"name": self._topic_name(), "partitions": partitions}]
        if self._has(apis.ADD_PARTITIONS_TO_TXN, version, "transactions"):
            one = {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch, "topics": topics}
            return {"transactions": [one | {"verify_only": self._chance(0.4)}]}
        return {
            "v3_and_below_transactional_id": name,
            "v3_and_below_producer_id": producer,
            "v3_and_below_producer_epoch": epoch,
            "v3_and_below_topics": topics,
        }

    def _add_offsets_to_txn(self, _actor: int, _version: int) -> Body:
        name = self._id()
        producer, epoch = self._producer(name)
        return {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch, "group_id": self._group()}

    def _txn_offset_commit(self, actor: int, version: int) -> Body:
        name, group = self._id(), self._group()
        producer, epoch = self._producer(name)
        body: Body = {
            "transactional_id": name,
            "group_id": group,
            "producer_id": producer,
            "producer_epoch": epoch,
            "topics": self._offsets(version >= 2),
        }
        if version >= 3 and self._chance(0.4):
            body |= {"generation_id": self._generation(group), "member_id": self._member(group, actor)}
        return body

    def _end_txn(self, _actor: int, _version: int) -> Body:
        name = self._id()
        producer, epoch = self._producer(name)
        return {
            "transactional_id": name,
            "producer_id": producer,
            "producer_epoch": epoch,
            "committed": self._chance(0.6),
        }

    def _write_txn_markers(self, _actor: int, version: int) -> Body:
        producer, epoch = self._producer(self._id())
        is_unknown = isinstance(producer, int)
        marker = {
            "producer_id": producer,
            "producer_epoch": epoch,
            "transaction_result": self._chance(0.5),
            "topics": [{"name": self._topic_name(), "partition_indexes": [self._partition()]}],
            # a greater epoch would fence the coordinator's own markers
            "coordinator_epoch": self.random.choice([-1, 0, 5] if is_unknown else [-1, 0]),
        }
        return {"markers": [marker | ({"transaction_version": 0} if version >= 2 else {})]}

    def _list_transactions(self, _actor: int, _version: int) -> Body:
        return {
            "state_filters": self.random.choice([[], ["Ongoing"], ["nonsense", "Empty"]]),
            "producer_id_filters": self.random.choice([[], [Bound(f"producer {self.prefix}x0", -1)], [UNKNOWN_PRODUCER]]),
        }

    # ---- records

    def _produce(self, _actor: int, version: int) -> Body:
        is_transactional = self._chance(0.5)
        name = self._id() if is_transactional else None
        partition = self._partition()
        producer, epoch = self._producer(name) if is_transactional or self._chance(0.6) else (-1, -1)
        known = name or "idempotent"
        sequence = self._sequences.get((known, partition), 0)
        if producer == -1:
            sequence, epoch = -1, -1
        elif self._chance(0.2):
            sequence += self.random.choice([-1, 1, 5])
        is_marked = is_transactional and self._chance(0.95) and producer != -1
        count = self.random.choice([1, 1, 3])
        records = Records(known if isinstance(producer, Bound) else "", producer, epoch, sequence, count, transactional=is_marked)
        has_ids = self._has(apis.PRODUCE, version, "topic_id")
        topic = self._named_topic(has_ids)[1]
        body: Body = {
            "acks": self.random.choice([-1] * 8 + [1, 1, 5, -2]),
            "timeout_ms": 1000,
            "topic_data": [topic | {"partition_data": [{"index": partition, "records": records}]}],
        }
        return body | ({"transactional_id": name if self._chance(0.95) else None} if version >= 3 else {})

    def _fetch(self, _actor: int, version: int) -> Body:
        has_ids = self._has(apis.FETCH, version, "topic_id")
        name, topic = self._named_topic(has_ids)
        named = topic if has_ids else {"topic": name}
        place: Body = {
            "partition": self._partition(),
            "fetch_offset": self.random.choice([0] * 6 + [1, 3, 10**6, -1]),
            "partition_max_bytes": 1 << 20,
        }
        if version >= 9:
            place["current_leader_epoch"] = self.random.choice([-1] * 6 + [0, 9])
        body: Body = {"max_wait_ms": 0, "min_bytes": 0, "topics": [named | {"partitions": [place]}]}
        if version >= 3:
            body["max_bytes"] = 1 << 20
        if version >= 4:
            body["isolation_level"] = self.random.choice([0, 1, 1])
        return body | ({"session_id": 0, "session_epoch": -1} if version >= 7 else {})

    def _list_offsets(self, _actor: int, version: int) -> Body:
        place: Body = {
            "partition_index": self._partition(),
            "timestamp": self.random.choice([-1, -1, -2, -3, -4, TIMESTAMP_MS, TIMESTAMP_MS + 10**9]),
        }
        if version >= 4:
            place["current_leader_epoch"] = self.random.choice([-1] * 6 + [0, 9])
        body: Body = {"replica_id": -1, "topics": [{"name": self._topic_name(), "partitions": [place]}]}
        return body | ({"isolation_level": self.random.choice([0, 1])} if version >= 2 else {})

    def _describe_producers(self, _actor: int, _version: int) -> Body:
        return {"topics": [{"name": self._topic_name(), "partition_indexes": [self._partition()]}]}
