"""Three nodes on three brokers, members of three libraries that commit, a job, and faults: nothing acknowledged is lost.

`FAULTS`, `SEED` and `MEMBERS` size the run (`make nodes FAULTS=50 MEMBERS=200`). It prints each fault, and the result.
"""

import os
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from committed_log import CommittedLog, GroupAnswer, committed_log, group_answers, offset_answers, stable_groups
from committing_members import Commits, FranzCrowd, JavaCommitter, LibrdkafkaMember, wait_for_progress
from confluent_kafka.admin import AdminClient
from eventually import equal_to, eventually
from following import Job
from java_clients import java_clients
from live_kafka import QUIET
from node_faults import Fault, Faults
from shared_log import LOG_PARTITIONS, LOG_TOPIC, PARTITIONS, TOPIC, SharedLog, shared_log

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.source.ranges import new_offsets
from pipelines.tables.store import TableStore

FAULTS = int(os.environ.get("FAULTS", "10"))
SEED = int(os.environ.get("SEED", "1"))
MEMBERS = int(os.environ.get("MEMBERS", "40"))
pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(60 * FAULTS + 2_400)]

Committer = FranzCrowd | LibrdkafkaMember | JavaCommitter

#: Members of a group, and seconds between two commits of a member.
SIZE, SECONDS = 5, 1.0
_JAVA_CLIENT = "4.1.1"
_OFFSETS_TOPIC = "__consumer_offsets"


def groups_of(members: int) -> dict[str, list[str]]:
    """Library → groups: a fifth of the members use librdkafka, a tenth Kafka's client for Java, at least one group each."""
    count = max(members // SIZE, 3)
    shares = {"librdkafka": max(count // 5, 1), "java": max(count // 10, 1)}
    shares["franz"] = count - sum(shares.values())
    return {library: [f"{library}-{number}" for number in range(share)] for library, share in shares.items()}


@contextmanager
def members(at: SharedLog, commits: Commits, groups: Mapping[str, Sequence[str]], folder: Path) -> Iterator[list[Committer]]:
    """All members, until the context ends; they do not leave their groups."""
    with ExitStack() as stack:
        java = stack.enter_context(java_clients(_JAVA_CLIENT))
        franz = FranzCrowd(commits, at.bootstrap, TOPIC, groups["franz"], SIZE, SECONDS, folder / "franz.log")
        found: list[Committer] = [franz]
        stack.callback(franz.kill)
        for group in groups["librdkafka"]:
            for number in range(SIZE):
                assignor = "cooperative-sticky" if group.endswith("0") else "range"
                found.append(LibrdkafkaMember(commits, at.bootstrap, TOPIC, group, f"{group}-{number}", SECONDS, assignor))
                stack.callback(found[-1].kill)
        for group in groups["java"]:
            for number in range(SIZE):
                found.append(JavaCommitter(commits, java, at.bootstrap, TOPIC, group, f"{group}-{number}", SECONDS))
                stack.callback(found[-1].kill)
        yield found


@contextmanager
def following_job(at: SharedLog, folder: Path) -> Iterator[Job]:
    """A job that reads the log into FOLDER/tables."""
    conf = folder / "job.toml"
    conf.write_text('[kafka]\nisolation_level = "read_committed"\n')
    with Job(at.address, folder / "tables", "--conf", str(conf), trigger="5s") as job:
        job.wait_until_logged("ready: following")
        yield job


def test_faults_lose_nothing(tmp_path: Path) -> None:
    by_library = groups_of(MEMBERS)
    groups = sorted(group for some in by_library.values() for group in some)
    commits = Commits()
    with shared_log(tmp_path) as at:
        with following_job(at, tmp_path) as job, members(at, commits, by_library, tmp_path) as crowd:
            wait_for_progress(commits, groups)
            faults = Faults(at, groups, SEED)
            faults.run(FAULTS, lambda fault: report_fault(fault, commits))
            at.start_ended_nodes()
            at.wait_until_served()
            stable_groups(at.bootstrap, dict.fromkeys(groups, SIZE), PARTITIONS)
            for each in crowd:
                each.pause()
            stable = stable_groups(at.bootstrap, dict.fromkeys(groups, SIZE), PARTITIONS)
            offsets = offset_answers(AdminClient({"bootstrap.servers": at.bootstrap, **QUIET}), groups)
            log = committed_log(at.address)
            for number in at.nodes:
                at.nodes[number].stop()
            expect_the_end(job, tmp_path / "tables", log)
        report_result(commits, log, faults.done)
        print(f"nodes that ended without a fault: {at.ended}; failed starts: {len(at.failed_starts)}", flush=True)
        assert at.bugs() == []
        expect_every_acknowledged_commit(commits, log)
        expect_generations_in_order(commits, log)
        assert offsets == log.offsets
        expect_in_tables(tmp_path / "tables", log)
        for broker in at.cluster.brokers:
            broker.stop()
        expect_the_answers_of_a_broker(at, tmp_path / "segments", stable, offsets)


def expect_the_end(job: Job, tables: Path, log: CommittedLog) -> None:
    """Wait until the tables have all of the log, and stop the job."""

    def left() -> int:
        last = TableStore(str(tables)).last_batch()
        return new_offsets({} if last is None else last.next_offsets, log.ends)

    eventually("the job reads the log to its end", left, equal_to(0), unless=job.failure, pause_seconds=0.5)
    job.signal(signal.SIGTERM)
    assert job.ended() == 0, job.text
    assert job.tracebacks == []
    batches, outages = len(job.lines_with("records read")), len(job.lines_with("the brokers answer again"))
    print(f"batches of the job: {batches}, outages: {outages}")


def expect_every_acknowledged_commit(commits: Commits, log: CommittedLog) -> None:
    """Every commit that was acknowledged is in the log, and the last offset of a partition is at least the last such one.

    A commit without an answer that a client repeated may come after a later one, as with brokers.
    """
    lost = [each for each in commits.acknowledged if (each.group, each.partition, each.offset) not in log.commits]
    assert lost == [], f"{len(lost)} of {len(commits.acknowledged)} acknowledged commits are lost: {lost[:5]}"
    latest: dict[tuple[str, int], int] = defaultdict(int)
    for each in commits.acknowledged:
        latest[each.group, each.partition] = max(latest[each.group, each.partition], each.offset)
    behind = {
        (group, partition): (log.offsets[group][TOPIC, partition], offset)
        for (group, partition), offset in latest.items()
        if log.offsets[group][TOPIC, partition] < offset
    }
    assert behind == {}


def expect_generations_in_order(commits: Commits, log: CommittedLog) -> None:
    """Generations go up in the log, and a member never commits with a lower one than before."""
    for group, generations in log.generations.items():
        assert generations == sorted(generations), group
    highest: dict[str, int] = {}
    for each in sorted(commits.acknowledged, key=lambda commit: commit.at):
        if each.generation >= 0:
            assert each.generation >= highest.get(each.member, 0), each
            assert each.generation <= log.generations[each.group][-1], each
            highest[each.member] = each.generation


def expect_in_tables(tables: Path, log: CommittedLog) -> None:
    """The tables have the last offset of each partition, and have counted each commit of the log once."""
    snapshot = Snapshot.open(str(tables))
    found: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for row in snapshot.query("SELECT group_id, topic, partition, committed_offset FROM offsets").to_pylist():
        found[row["group_id"]][row["topic"], row["partition"]] = row["committed_offset"]
    assert found == log.offsets
    counted = "SELECT group_id, partition, sum(commits) AS commits FROM offset_history GROUP BY group_id, partition"
    assert {(row["group_id"], row["partition"]): row["commits"] for row in snapshot.query(counted).to_pylist()} == log.counts
    assert check(str(tables)) == []


def expect_the_answers_of_a_broker(
    at: SharedLog, segments: Path, stable: Mapping[str, GroupAnswer], offsets: Mapping[str, Mapping[tuple[str, int], int]]
) -> None:
    """A broker that loads the topic's files as `__consumer_offsets` answers the same."""
    for folder in at.cluster.brokers[0].data.glob(f"{LOG_TOPIC}-[0-9]*"):
        shutil.copytree(folder, segments / f"{_OFFSETS_TOPIC}-{folder.name.rpartition('-')[2]}")
    with PrivateBroker(offsets_partitions=LOG_PARTITIONS) as broker:
        with Clients(broker.bootstrap) as clients:
            clients.create_topics([TOPIC], PARTITIONS)
            clients.commit(clients.consumer("makes-the-offsets-topic"), [(TOPIC, 0, 1)])
        broker.stop()
        broker.place_segments(segments)
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        assert offset_answers(admin, sorted(offsets)) == offsets
        # the sessions of the members begin with the load and end later
        found = group_answers(admin, sorted(stable))
        assert found == stable


# ---- numbers


def report_fault(fault: Fault, commits: Commits) -> None:
    begun = time.strftime("%H:%M:%S", time.gmtime(fault.at))
    print(f"{begun} {fault.kind}: {fault.what}, {fault.until - fault.at:.1f} s; {commits.count()} commits", flush=True)


def report_result(commits: Commits, log: CommittedLog, faults: Sequence[Fault]) -> None:
    """Print counts, and for each kind of fault how long groups had no answered commit, and the groups of the node hit."""
    lost = sum((each.group, each.partition, each.offset) not in log.commits for each in commits.acknowledged)
    print(
        f"{len(commits.acknowledged)} commits acknowledged, {lost} lost, {sum(commits.refused.values())} refused, "
        f"{commits.forgotten} forgotten by their library, {log.records} records, {log.overtaken} overtaken"
    )
    print(f"refused: {dict(commits.refused.most_common())}")
    answered: dict[str, list[float]] = defaultdict(list)
    for each in commits.acknowledged:
        answered[each.group].append(each.at)
    for times in answered.values():
        times.sort()
    for kind in sorted({fault.kind for fault in faults}):
        some = [fault for fault in faults if fault.kind is kind]
        first = [_first_after(answered[group], fault.at) for fault in some for group in fault.groups]
        silence = [(*_longest_silence(times, fault), group) for fault in some for group, times in answered.items()]
        seconds, since, group = max(silence)
        at = time.strftime("%H:%M:%S", time.gmtime(since))
        line = f"{kind}: {len(some)}; longest time without an answered commit of a group {seconds:.1f} s ({group}, {at})"
        if first:
            line += f"; to the first answered commit of its groups: median {median(first):.1f} s, max {max(first):.1f} s"
        print(line, flush=True)


#: An answer that was on the way when the fault began.
_ON_THE_WAY = 0.05


def _first_after(times: Sequence[float], at: float) -> float:
    return next((each - at for each in times if each > at + _ON_THE_WAY), float("nan"))


def _longest_silence(times: Sequence[float], fault: Fault) -> tuple[float, float]:
    """The longest time between two answers that overlaps the fault, and its begin."""
    inside = [each for each in times if fault.at <= each <= fault.until]
    before = max((each for each in times if each < fault.at), default=fault.at)
    after = min((each for each in times if each > fault.until), default=fault.until)
    return max((later - earlier, earlier) for earlier, later in pairwise([before, *inside, after]))
