"""Carry out the steps of a scenario on a live broker, and write down what is true from then on."""

import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from os import kill
from typing import Any, Protocol

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from eventually import eventually
from java_clients import JavaClients
from live_kafka import QUIET
from patience import PATIENCE_SECONDS
from positions import Bounds
from scenario import FRANZ, JAVA, LIBRDKAFKA, Member, Scenario
from traffic import Traffic, rates
from truth import Incident, Truth
from workers import FranzWorker, JavaWorker, LibrdkafkaWorker, Worker

from pipelines.examples.private.kafka.broker import PrivateBroker

_SPECS: Any = OffsetSpec


class JobControl(Protocol):
    """The job as the steps need it."""

    def start(self) -> None:
        """Start a process."""

    def wait_until_ready(self) -> None:
        """Wait until it has read all that it missed."""

    def wait_until_read(self) -> None:
        """Wait until its tables have all that the coordinators have now; what follows is then in a later batch."""

    def kill(self) -> None:
        """End it with SIGKILL."""


class Planting:
    """The members of a scenario, and its steps as methods: each changes the cluster, and the truth with it."""

    def __init__(
        self,
        broker: PrivateBroker,
        java: JavaClients,
        traffic: Traffic,
        scenario: Scenario,
        truth: Truth,
        job: "JobControl",
    ) -> None:
        self._broker = broker
        self._java = java
        self._traffic = traffic
        self._scenario = scenario
        self._truth = truth
        self._job = job
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        self._members = {member.client_id: member for member in scenario.members}
        self._workers: dict[str, Worker] = {}
        self._stack = ExitStack()
        self._gone_at: float | None = None
        self._waited = 0.0

    def __enter__(self) -> "Planting":
        for member in self._scenario.members:
            self._work(member)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            self._stack.callback(worker.close)
        self._stack.close()

    def failure(self) -> str | None:
        """The reason why a client no longer works."""
        failures = [f"{client}: {failure}" for client, worker in self._workers.items() if (failure := worker.failure())]
        return next(iter(failures), self._traffic.failure())

    def wait_until_committed(self) -> None:
        """Wait until every group has a commit for every partition of its topic."""

        def missing() -> list[str]:
            series = self._truth.positions.committed
            wanted = {
                (group, topic, partition)
                for group, topic in self._scenario.groups().items()
                for partition in range(self._scenario.topics()[topic])
            }
            return [str(key) for key in wanted if key not in series or series[key].values[-1] is None]

        eventually(
            "every group has committed",
            missing,
            lambda found: not found,
            unless=self.failure,
            pause_seconds=0.5,
        )

    def run(self) -> None:
        """Carry out the steps at their times; those after a wait for the job are as much later as it lasted.

        Raises AssertionError when a client has ended.
        """
        self._truth.started = time.time()
        for step in self._scenario.steps:
            self._wait_until(self._truth.started + self._waited + step.at)
            getattr(self, step.action)(**step.arguments)
        self._wait_until(self._truth.started + self._waited + self._scenario.seconds)
        self._truth.ended = time.time()
        assert self._gone_at is None, "the job was not started again"

    def set_rate(self, client_id: str, rate: float | None) -> None:
        """Stop a member, which stays in its group; without a rate it continues."""
        member = self._members[client_id]
        before = time.time()
        self._workers[client_id].set_rate(rate)
        if rate == 0:
            # the last commit may be on its way
            self._plant("stopped", member.group, before, owners=(client_id,))
        else:
            self._end("stopped", member.group, before)

    def slow_down(self, client_id: str, share: float) -> None:
        """Let a member read a share of what its topic gets."""
        member = self._members[client_id]
        produced = rates(self._scenario.streams)[member.topic]
        before = time.time()
        self._workers[client_id].set_rate(share * produced)
        facts = {"per_second": (1 - share) * produced}
        self._plant("falls_behind", member.group, before, owners=(client_id,), facts=facts)

    def heat(self, group: str, partition: int, rate: float, limit: float) -> None:
        """Write more records to one partition of a group's topic, of which each of its members reads a limited number."""
        topic = self._scenario.groups()[group]
        workers = {client_id: self._workers[client_id] for client_id, each in self._members.items() if each.group == group}
        for worker in workers.values():
            worker.set_rate(limit)
        before = time.time()
        self._traffic.heat(topic, partition, rate)
        owners = tuple(id_ for id_, each in workers.items() if isinstance(each, LibrdkafkaWorker) and partition in each.owned())
        produced = rate + rates(self._scenario.streams)[topic] / self._scenario.topics()[topic]
        facts = {"topic": topic, "per_second": produced}
        self._plant("hot", group, before, owners=owners, partition=partition, facts=facts)

    def skip(self, client_id: str, partition: int) -> None:
        """Let a member read no more records of one of its partitions."""
        member = self._members[client_id]
        worker = self._workers[client_id]
        assert isinstance(worker, LibrdkafkaWorker)
        before = time.time()
        worker.skip(partition)
        self._plant("skewed", member.group, before, owners=(client_id,), partition=partition)

    def open_transaction(self, transactional_id: str, topic: str, records: int) -> None:
        """Leave a transaction open in a topic that several groups read."""
        before = time.time()
        self._traffic.leave_transaction_open(transactional_id, topic, 0, records)
        for group, of in self._scenario.groups().items():
            if of == topic:
                self._plant("blocked", group, before, transactional_id=transactional_id)

    def abort_transaction(self, transactional_id: str) -> None:
        """Abort that transaction."""
        self._traffic.abort_transaction(transactional_id)
        for incident in self._truth.incidents:
            if incident.transactional_id == transactional_id:
                incident.until = time.time()

    def join(self, member: Member) -> None:
        """Add a member to a group whose topic has no partition for it: a spare one, which is no incident."""
        self._work(member)

    def rewind(self, client_id: str, partition: int, records: int) -> None:
        """Let a member continue at an earlier offset."""
        worker = self._workers[client_id]
        assert isinstance(worker, LibrdkafkaWorker)
        moved = worker.rewind(partition, records)
        facts = {"from_offset": moved.from_offset, "to_offset": moved.to_offset, "by": "member"}
        group = self._members[client_id].group
        self._plant("rewound", group, moved.asked, moved.answered, owners=(client_id,), partition=partition, facts=facts)

    def reset_by_admin(self, client_id: str, records: int) -> None:
        """Let the member leave, lower the offset of partition 0 as `kafka-consumer-groups` does, and let it join again.

        A batch keeps the last commits only, so each of the three has a batch of its own, as when the tool is run by hand.
        """
        member = self._members[client_id]
        left = time.time()
        self._workers.pop(client_id).close()
        self._expire(member.group, left)
        self._job.wait_until_read()
        place = TopicPartition(member.topic, 0)
        request = ConsumerGroupTopicPartitions(member.group, [place])
        (found,) = self._admin.list_consumer_group_offsets([request], request_timeout=PATIENCE_SECONDS).values()
        from_offset = found.result().topic_partitions[0].offset
        place = TopicPartition(member.topic, 0, from_offset - records)
        before = time.time()
        (done,) = self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(member.group, [place])]).values()
        done.result(PATIENCE_SECONDS)
        facts = {"from_offset": from_offset, "to_offset": place.offset, "by": "admin"}
        self._plant("reset", member.group, before, partition=0, facts=facts)
        self._job.wait_until_read()
        self._work(member)
        self._end("expiring", member.group, time.time())

    def recreate(self, client_id: str) -> None:
        """Delete a group, whose member then joins again and reads the topic from its beginning. Nothing is wrong with it."""
        member = self._members[client_id]
        self._workers.pop(client_id).close()
        before = time.time()
        (done,) = self._admin.delete_consumer_groups([member.group], request_timeout=PATIENCE_SECONDS).values()
        done.result(PATIENCE_SECONDS)
        self._truth.absent.setdefault(member.group, []).append(Bounds(before, time.time()))
        self._work(member)

    def leave(self, client_id: str) -> None:
        """Let the only member leave: the offsets of an empty group expire."""
        member = self._members[client_id]
        before = time.time()
        self._workers.pop(client_id).close()
        self._expire(member.group, before)

    def storm(self, group: str, topic: str, members: int) -> None:
        """Let members join and leave, one after the other: two rebalances each."""
        before = time.time()
        for number in range(members):
            worker = self._new(Member(group, LIBRDKAFKA, topic, f"{group}-extra-{number}"))
            time.sleep(1)
            worker.close()
        self._plant("storm", group, before, before, until=time.time(), facts={"rebalances": 2 * members})

    def delete_records(self, client_id: str, left: int) -> None:
        """Delete unread records, but for the last `left` ones."""
        member = self._members[client_id]
        positions = self._truth.positions

        def found() -> tuple[int, int]:
            committed = positions.committed[member.group, member.topic, 0].values[-1]
            end = positions.ends[member.topic, 0].values[-1]
            assert committed is not None
            assert end is not None
            return committed, end

        committed, end = eventually("more unread records than are left", found, lambda both: both[1] - both[0] > left)
        place = TopicPartition(member.topic, 0, end - left)
        before = time.time()
        (done,) = self._admin.delete_records([place], request_timeout=PATIENCE_SECONDS).values()
        done.result(PATIENCE_SECONDS)
        self._plant("data_lost", member.group, before, partition=0, facts={"messages_lost": end - left - committed})

    def pause_broker(self, seconds: float) -> None:
        """Stop the broker's process, and continue it."""
        before = time.time()
        kill(self._broker.pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            kill(self._broker.pid, signal.SIGCONT)
        self._truth.paused.append(Bounds(before, time.time()))

    def kill_job(self) -> None:
        """Kill the job with SIGKILL."""
        self._gone_at = time.time()
        self._job.kill()

    def start_job(self) -> None:
        """Start the job again, and wait until it has read all that it missed."""
        assert self._gone_at is not None
        begun = time.time()
        self._job.start()
        self._job.wait_until_ready()
        self._truth.restarts.append(begun)
        self._truth.away.append(Bounds(self._gone_at, time.time()))
        self._waited += time.time() - begun
        self._gone_at = None

    def _expire(self, group: str, left: float) -> None:
        """The members of a group have left since a time: its offsets expire."""
        retention = self._scenario.retention_minutes * 60
        facts = {"expires_at": [left + retention, time.time() + retention]}
        self._plant("expiring", group, left, facts=facts)

    def _plant(self, kind: str, group: str, before: float, after: float | None = None, **more: Any) -> None:
        self._truth.incidents.append(Incident(kind, group, Bounds(before, after or time.time()), **more))

    def _end(self, kind: str, group: str, at: float) -> None:
        for incident in self._truth.of(group):
            if incident.kind == kind and incident.until is None:
                incident.until = at

    def _work(self, member: Member) -> None:
        self._members[member.client_id] = member
        self._workers[member.client_id] = self._new(member)

    def _new(self, member: Member) -> Worker:
        arguments = (self._broker.bootstrap, member.group, member.topic, member.client_id, member.isolation)
        made: Mapping[str, Callable[[], Worker]] = {
            LIBRDKAFKA: lambda: LibrdkafkaWorker(*arguments),
            JAVA: lambda: JavaWorker(self._java, *arguments),
            FRANZ: lambda: FranzWorker(*arguments),
        }
        return made[member.library]()

    def _wait_until(self, at: float) -> None:
        eventually(
            "the time of the next action",
            lambda: at - time.time(),
            lambda left: left <= 0,
            unless=self.failure,
            patience_seconds=max(30.0, 2 * (at - time.time())),
            pause_seconds=0.2,
        )
