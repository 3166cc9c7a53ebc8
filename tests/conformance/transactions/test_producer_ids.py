"""Kafka's ProducerIdManagerTest and ProducerIdsBlockTest: blocks of producer ids."""

import json
from pathlib import Path

import pytest

from coordinator_core.service.transactions.producer_id_file import FILE, ProducerIdFile, ProducerIdFileDamaged
from coordinator_core.transaction_coordinator.producer_ids import (
    NO_BLOCK,
    BlocksExhausted,
    ProducerIdManager,
    ProducerIdsBlock,
    next_block,
)


class Blocks:
    """A manager whose requests the test answers."""

    def __init__(self) -> None:
        self.requests = 0
        self.now_ms = 0
        self.manager = ProducerIdManager(self._request, lambda: self.now_ms)

    def _request(self) -> None:
        self.requests += 1


@pytest.mark.parametrize("size", [1, 2, 10, 100])
def test_every_id_once(size: int) -> None:
    """testConcurrentGeneratePidRequests"""
    at = Blocks()
    assert at.manager.generate() is None
    found: list[int] = []
    for number in range(3):
        assert at.requests == number + 1
        assert at.manager.allocated(ProducerIdsBlock(number * size, size))
        for _ in range(size):
            producer_id = at.manager.generate()
            assert producer_id is not None
            found.append(producer_id)
    assert found == list(range(3 * size))
    assert at.manager.generate() is None


def test_errors_of_the_allocation() -> None:
    """testUnrecoverableErrors"""
    at = Blocks()
    at.manager.request()
    assert at.manager.allocated(ProducerIdsBlock(0, 1))
    assert at.manager.generate() == 0
    assert at.manager.generate() is None
    at.manager.allocation_failed()
    assert at.manager.generate() is None
    at.now_ms += 50
    assert at.manager.generate() is None
    assert at.manager.allocated(ProducerIdsBlock(1, 1))
    assert at.manager.generate() == 1


@pytest.mark.parametrize("block", [(-1, 10), (0, -1), (2**63 - 1, 10)])
def test_invalid_blocks(block: tuple[int, int]) -> None:
    """testInvalidRanges"""
    at = Blocks()
    at.manager.request()
    assert not at.manager.allocated(ProducerIdsBlock(*block))
    assert at.manager.generate() is None


@pytest.mark.parametrize(
    "case",
    ["testRetryBackoff", "testRetryBackoffOnAuthException", "testRetryBackoffOnVersionMismatch", "testRetryBackoffOnNoResponse"],
)
def test_a_failed_request_is_not_repeated_at_once(case: str) -> None:
    """The manager has one kind of failure."""
    at = Blocks()
    assert case
    assert at.manager.generate() is None
    at.manager.allocation_failed()
    at.now_ms += 49
    assert at.manager.generate() is None
    assert at.requests == 1
    at.now_ms += 1
    assert at.manager.generate() is None
    assert at.requests == 2


def test_a_block_that_overlaps() -> None:
    """testSanityCheckProhibitsOverlappingBlocks"""
    at = Blocks()
    at.manager.request()
    assert at.manager.allocated(ProducerIdsBlock(0, 10))
    assert at.manager.generate() == 0
    assert not at.manager.allocated(ProducerIdsBlock(9, 10))
    assert at.manager.allocated(ProducerIdsBlock(10, 10))


def test_the_next_block_is_requested_early() -> None:
    """Beside: after nine tenths of a block, once."""
    at = Blocks()
    at.manager.request()
    at.manager.allocated(ProducerIdsBlock(0, 10))
    assert [at.manager.generate() for _ in range(9)] == list(range(9))
    assert at.requests == 1
    assert at.manager.generate() == 9
    assert at.requests == 2


def test_blocks() -> None:
    """Beside: ProducerIdsBlockTest and testInitialResult, testMaxValue."""
    assert (NO_BLOCK.last, NO_BLOCK.next_first, NO_BLOCK.size) == (-1, 0, 0)
    assert next_block(None) == ProducerIdsBlock(0, 1000)
    assert next_block(ProducerIdsBlock(0)) == ProducerIdsBlock(1000)
    with pytest.raises(BlocksExhausted):
        next_block(ProducerIdsBlock(2**63 - 1000))


def test_the_file_of_blocks(tmp_path: Path) -> None:
    """Beside: a block is durable before its ids are used, in the form of brokers before 3.0."""
    assert ProducerIdFile(tmp_path, 1).allocate() == ProducerIdsBlock(0)
    assert json.loads((tmp_path / FILE).read_text()) == {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"}
    assert ProducerIdFile(tmp_path, 1).allocate() == ProducerIdsBlock(1000)
    for damage in ("{", "[]", '{"block_start": "x", "block_end": "1"}'):
        (tmp_path / FILE).write_text(damage)
        with pytest.raises(ProducerIdFileDamaged):
            ProducerIdFile(tmp_path, 1).allocate()


@pytest.mark.parametrize(("highest", "first"), [(-1, 1000), (999, 1000), (1000, 2000), (4321, 5000)])
def test_ids_that_a_log_uses_are_not_allocated(tmp_path: Path, highest: int, first: int) -> None:
    """Beside: brokers have the last block in their metadata, a log directory may come without it."""
    ProducerIdFile(tmp_path, 1).allocate()
    assert ProducerIdFile(tmp_path, 1, highest).allocate() == ProducerIdsBlock(first)
    assert ProducerIdFile(tmp_path, 1).allocate() == ProducerIdsBlock(first + 1000)


def test_a_log_that_uses_the_last_id(tmp_path: Path) -> None:
    """Beside: no id is given out twice, not even then."""
    with pytest.raises(BlocksExhausted):
        ProducerIdFile(tmp_path, 1, 2**63 - 1).allocate()
