"""Producers, transactions, repetitions, restarts and deletions in any order: sequences are never skipped, no batch is written
twice, consumers with read_committed see committed records only, and the states equal those rebuilt from the log."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from data_partitions import ABORT, COMMIT, NOW_MS, OnDisk
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator_core.producers.append import ProducerRejected
from coordinator_core.producers.entry import increment_sequence
from coordinator_core.producers.leader_checks import start_verification
from coordinator_core.producers.rules import ProducerError
from coordinator_core.segment_log.data_partition import Appended

PRODUCERS = st.sampled_from([1, 2, 3])
MAX_SEQUENCE = (1 << 31) - 1


class Sender:
    """What a producer knows: its epoch, its next sequence number, and the batches of the epoch with their offsets."""

    def __init__(self, first_sequence: int) -> None:
        self.epoch = 0
        self.next_sequence = first_sequence
        self.sent: list[tuple[int, int, bool, int]] = []
        self.has_sent = False
        #: Offsets of the open transaction; None if none is open.
        self.open: list[int] | None = None

    def bump(self) -> None:
        self.epoch += 1
        self.next_sequence, self.sent = 0, []


class DataPartitionMachine(RuleBasedStateMachine):
    """`committed` and `pending` follow from the calls alone."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="data-partition-"))

    @initialize(segment_bytes=st.sampled_from(["14", "400", "100000"]), first=st.sampled_from([0, 0, MAX_SEQUENCE - 2]))
    def start(self, segment_bytes: str, first: int) -> None:
        self.log = OnDisk(self.folder, segment_bytes=segment_bytes, retention_ms="-1")
        self.senders = {producer: Sender(first) for producer in (1, 2, 3)}
        self.deleted = False
        self.visible: set[int] = set()
        self.all: set[int] = set()

    @rule(producer=PRODUCERS, counts=st.lists(st.integers(1, 3), min_size=1, max_size=7), transactional=st.booleans())
    def send(self, producer: int, counts: list[int], transactional: bool) -> None:
        for count in counts:
            self._send(producer, count, transactional)

    def _send(self, producer: int, count: int, transactional: bool) -> None:
        sender = self.senders[producer]
        end = self.log.at.log.end_offset
        is_open = sender.open is not None
        if is_open and not transactional:
            self._refused(ProducerError.INVALID_TXN_STATE, producer, sender, sender.next_sequence, count, False)
            return
        appended = self._append(producer, sender, sender.next_sequence, count, transactional)
        assert (appended.base_offset, appended.is_duplicate) == (end, False)
        sender.has_sent = True
        sender.sent.append((sender.next_sequence, count, transactional, end))
        sender.next_sequence = increment_sequence(sender.next_sequence, count)
        offsets = range(end, end + count)
        self.all |= set(offsets)
        if transactional:
            sender.open = [*(sender.open or ()), *offsets]
        else:
            self.visible |= set(offsets)

    @rule(producer=PRODUCERS, back=st.integers(1, 8))
    def repeat(self, producer: int, back: int) -> None:
        """Repeat one of the last batches: the newest five are answered as before, older ones are refused."""
        sender = self.senders[producer]
        if back > len(sender.sent):
            return
        sequence, count, transactional, offset = sender.sent[-back]
        end = self.log.at.log.end_offset
        if back <= 5:
            appended = self._append(producer, sender, sequence, count, transactional)
            assert (appended.base_offset, appended.is_duplicate) == (offset, True)
        else:
            with pytest.raises(ProducerRejected):
                self._append(producer, sender, sequence, count, transactional)
        assert self.log.at.log.end_offset == end

    @rule(producer=PRODUCERS, gap=st.integers(1, 5))
    def skip(self, producer: int, gap: int) -> None:
        sender = self.senders[producer]
        if sender.sent:
            sequence = increment_sequence(sender.next_sequence, gap)
            transactional = sender.open is not None
            self._refused(ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER, producer, sender, sequence, 1, transactional)

    @rule(producer=PRODUCERS)
    def send_with_an_old_epoch(self, producer: int) -> None:
        sender = self.senders[producer]
        if sender.epoch and self.log.at.producers.entry(producer).epoch == sender.epoch:
            old = Sender(0)
            old.epoch = sender.epoch - 1
            self._refused(ProducerError.INVALID_PRODUCER_EPOCH, producer, old, 0, 1, True)

    @rule(producer=PRODUCERS, kind=st.sampled_from([COMMIT, ABORT]), version=st.sampled_from([0, 2]))
    def end(self, producer: int, kind: object, version: int) -> None:
        sender = self.senders[producer]
        epoch = sender.epoch + (version == 2)
        if version == 2:
            sender.bump()
        if not sender.has_sent:
            # only the marker is known of the producer, which must start at 0
            sender.next_sequence = 0
        self.log.marker(producer, COMMIT if kind is COMMIT else ABORT, epoch=epoch, version=version)
        if kind is COMMIT:
            self.visible |= set(sender.open or ())
        sender.open = None

    @rule(producer=PRODUCERS)
    def new_instance(self, producer: int) -> None:
        """A producer begins again with a greater epoch; the coordinator aborts its open transaction."""
        sender = self.senders[producer]
        sender.bump()
        self.log.marker(producer, ABORT, epoch=sender.epoch)
        sender.open = None

    @rule()
    def roll(self) -> None:
        self.log.at.log.roll()

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        before = dict(self.log.at.producers.entries)
        ongoing, aborted = self.log.at.producers.first_undecided_offset(), list(self.log.at.aborted_transactions)
        if clean:
            self.log.reopen()
        else:
            self.log.kill()
        after = dict(self.log.at.producers.entries)
        if not self.deleted:
            assert after == before
        # of deleted segments, the snapshot has the newest batch of each producer
        for producer, entry in after.items():
            assert replace(entry, batches=entry.batches[-1:]) == replace(before[producer], batches=before[producer].batches[-1:])
            self.senders[producer].sent = self.senders[producer].sent[len(self.senders[producer].sent) - len(entry.batches) :]
        assert after.keys() == before.keys()
        assert self.log.at.producers.first_undecided_offset() == ongoing
        assert list(self.log.at.aborted_transactions) == aborted

    @precondition(lambda self: self.log.at.high_watermark > self.log.at.log_start_offset)
    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        start, end = self.log.at.log_start_offset, self.log.at.high_watermark
        offset = start + int((end - start) * share)
        before = dict(self.log.at.producers.entries)
        self.log.at.delete_records(offset)
        self.deleted |= self.log.at.remove_old_segments(NOW_MS) > 0
        assert self.log.at.log_start_offset == offset
        assert dict(self.log.at.producers.entries) == before

    def _append(self, producer: int, sender: Sender, sequence: int, count: int, transactional: bool) -> Appended:
        guard = 0
        if transactional:
            states = self.log.at.producers
            guard = start_verification(states, producer, sequence, sender.epoch, NOW_MS, supports_epoch_bump=False)
        try:
            return self.log.append(
                *[b"v"] * count,
                producer=producer,
                epoch=sender.epoch,
                sequence=sequence,
                transactional=transactional,
                guard=guard,
                verification_enabled=True,
            )
        finally:
            self.log.at.producers.verifications.remove(producer)

    def _refused(
        self, error: ProducerError, producer: int, sender: Sender, sequence: int, count: int, transactional: bool
    ) -> None:
        end, before = self.log.at.log.end_offset, dict(self.log.at.producers.entries)
        with pytest.raises(ProducerRejected) as rejected:
            self._append(producer, sender, sequence, count, transactional)
        assert rejected.value.error is error
        assert (self.log.at.log.end_offset, dict(self.log.at.producers.entries)) == (end, before)

    @invariant()
    def consumers_see_what_is_decided(self) -> None:
        if not hasattr(self, "log"):
            return
        start = self.log.at.log_start_offset
        open_offsets = [offset for sender in self.senders.values() for offset in sender.open or ()]
        stable = min(open_offsets, default=self.log.at.high_watermark)
        assert self.log.at.last_stable_offset == max(stable, start)
        expected = sorted(offset for offset in self.visible if start <= offset < stable)
        assert self.log.offsets(committed=True) == expected
        assert self.log.offsets(committed=False) == sorted(offset for offset in self.all if offset >= start)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.at.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


DataPartitionMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestDataPartition = DataPartitionMachine.TestCase
