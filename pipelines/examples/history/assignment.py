"""Partitions shared among members as evenly as possible, with few moves."""

from collections.abc import Iterable, Mapping, Sequence

TopicPartition = tuple[str, int]
#: Partitions of each member, sorted.
Owned = dict[str, list[TopicPartition]]


def ranges(partitions: Mapping[str, int], members: Sequence[str]) -> Owned:
    """Consecutive partitions of each topic for each member, as the range assignor shares them."""
    owned: Owned = {member: [] for member in members}
    for topic, count in partitions.items():
        for number in range(count):
            owned[members[number * len(members) // count]].append((topic, number))
    return owned


def balanced(partitions: Mapping[str, int], owned: Mapping[str, Iterable[TopicPartition]], members: Sequence[str]) -> Owned:
    """Members keep their partitions up to an even share; the rest is given to those with the fewest."""
    every = [(topic, number) for topic, count in partitions.items() for number in range(count)]
    most = -(-len(every) // len(members))
    found: Owned = {member: list(owned.get(member, ()))[:most] for member in members}
    kept = {each for of_member in found.values() for each in of_member}
    for each in every:
        if each not in kept:
            min(found.values(), key=len).append(each)
    while max(map(len, found.values())) - min(map(len, found.values())) > 1:
        min(found.values(), key=len).append(max(found.values(), key=len).pop())
    return {member: sorted(of_member) for member, of_member in found.items()}


def by_topic(partitions: Mapping[str, int], owned: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """Partition numbers by topic; a topic without partitions has none."""
    owned = list(owned)
    return {topic: tuple(number for name, number in owned if name == topic) for topic in partitions}
