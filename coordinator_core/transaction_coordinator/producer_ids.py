"""Producer ids in blocks (`RPCProducerIdManager`): ids of a block are handed out in order, and a restart loses the rest of it."""

from collections.abc import Callable
from typing import NamedTuple

#: `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`.
BLOCK_SIZE = 1000
#: Share of a block after which the next one is requested.
_PREFETCH_PERCENT = 90
_BACKOFF_MS = 50
_MOST_SWITCHES = 3
_INT64_MAX = 2**63 - 1


class ProducerIdsBlock(NamedTuple):
    """`size` producer ids from `first` on."""

    first: int
    size: int = BLOCK_SIZE

    @property
    def last(self) -> int:
        """Last id; -1 for the empty block at 0."""
        return self.first + self.size - 1

    @property
    def next_first(self) -> int:
        """First id after this block."""
        return self.first + self.size


NO_BLOCK = ProducerIdsBlock(0, 0)


class ProducerIdManager:
    """Ids of the current block, and the request for the next one.

    `request_block` requests a block; its owner reports the result with `allocated` or `allocation_failed`. At most one request is
    in progress, and after a failure the next one waits 50 ms.
    """

    def __init__(self, request_block: Callable[[], None], now_ms: Callable[[], int]) -> None:
        self._request_block = request_block
        self._now_ms = now_ms
        self._current = NO_BLOCK
        self._claimed = 0
        self._next: ProducerIdsBlock | None = None
        self._is_requesting = False
        self._retry_at_ms: int | None = None

    def generate(self) -> int | None:
        """Return the next id; None while no block is there, which clients see as COORDINATOR_LOAD_IN_PROGRESS."""
        for _ in range(_MOST_SWITCHES + 1):
            if self._claimed < self._current.size:
                producer_id = self._current.first + self._claimed
                self._claimed += 1
                if producer_id == self._current.first + self._current.size * _PREFETCH_PERCENT // 100:
                    self.request()
                return producer_id
            block, self._next = self._next, None
            if block is None:
                self.request()
                # an owner that allocates within the call has already reported the block
                if self._next is None:
                    return None
                continue
            self._current, self._claimed = block, 0
            self._is_requesting = False
        return None

    def request(self) -> None:
        """Request the next block, unless it is there, requested, or an attempt has failed within the last 50 ms."""
        if self._retry_at_ms is not None and self._now_ms() < self._retry_at_ms:
            return
        if self._next is None and not self._is_requesting:
            self._is_requesting = True
            self._request_block()

    def allocated(self, block: ProducerIdsBlock) -> bool:
        """Accept a block; returns False for one that overlaps the current one or exceeds the range of ids."""
        is_in_range = block.first >= 0 and block.size >= 0 and block.first <= _INT64_MAX - block.size
        if block.first <= self._current.last or not is_in_range:
            self.allocation_failed()
            return False
        self._next = block
        self._retry_at_ms = None
        return True

    def allocation_failed(self) -> None:
        """Report that no block was allocated."""
        self._is_requesting = False
        self._retry_at_ms = self._now_ms() + _BACKOFF_MS


class BlocksExhausted(Exception):
    """No producer ids are left: the next block would exceed 2⁶³ - 1."""


def next_block(last: ProducerIdsBlock | None) -> ProducerIdsBlock:
    """Return the block after the last one; the first id of a cluster is 0. Raises BlocksExhausted."""
    if last is None:
        return ProducerIdsBlock(0)
    if last.last > _INT64_MAX - BLOCK_SIZE:
        raise BlocksExhausted(f"the last producer id of a block is {last.last}: no block of {BLOCK_SIZE} ids is left after it")
    return ProducerIdsBlock(last.next_first)
