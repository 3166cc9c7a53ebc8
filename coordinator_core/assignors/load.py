"""Members sorted by their number of partitions."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator


class Load:
    """Number of partitions by member; iterates over the members from fewest to most partitions, then by id."""

    def __init__(self, sizes: Iterable[tuple[str, int]]) -> None:
        self._sizes = dict(sizes)
        self._order = sorted((size, member) for member, size in self._sizes.items())

    def __getitem__(self, member: str) -> int:
        return self._sizes[member]

    def __iter__(self) -> Iterator[str]:
        return (member for _, member in self._order)

    def change(self, member: str, by: int) -> None:
        size = self._sizes[member]
        del self._order[bisect_left(self._order, (size, member))]
        self._sizes[member] = size + by
        insort(self._order, (size + by, member))
