"""Which log partitions of a batch speak for their groups, by the rules of `coordinator_core/log/partition_count.py`.

Change rows of other partitions are kept in the histories as `elsewhere`; the plan of the batch does not see them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec import Record, decode
from coordinator_core.log.partition_count import KAFKA, KeyPlace, Partitioner, count_in_force, misplaced, speaking_partition
from coordinator_core.reduction.reduced_transactions import TransactionReduction
from coordinator_core.state.registry import group_id_of
from pipelines.batch.previous_batch import PreviousBatch
from pipelines.runtime.time_columns import ms_of
from pipelines.source.changes import SCHEMA, ChangeKind, of_kind

#: Tables with state of groups: each row has the log partition that it is from.
STATE_TABLES = ("offsets", "pending_offsets", "group_records", "members", "groups")

#: Those of them that have every place with state: a group record and a member have a row of `groups`.
_PLACES_OF_STATE = ("offsets", "pending_offsets", "groups")

_RECORDS = (str(ChangeKind.RECORD), str(ChangeKind.STATE_ONLY))
_VALUES = (str(ChangeKind.COMMIT), str(ChangeKind.PENDING))

#: The change rows of kind `commit` of these groups.
CommitRows = Callable[[Sequence[str]], pa.Table]


@dataclass(frozen=True)
class StatedPartitions:
    """The numbers of partitions of both topics by the options of the job; None if not stated.

    They place the keys of sources that do not know these numbers.
    """

    groups: int | None = None
    transactions: int | None = None


@dataclass(frozen=True)
class Placement:
    """The count of log partitions that places keys (None: unknown), and what it excludes.

    `elsewhere` are places in the batch that decide nothing, `moved` places of the tables whose state is not that of the key any
    more. `has_grown` if the topic has more partitions than the brokers use. `partitioner` is the one that placed the keys.
    """

    count: int | None = None
    elsewhere: frozenset[KeyPlace] = frozenset()
    moved: frozenset[KeyPlace] = frozenset()
    has_grown: bool = False
    partitioner: Partitioner = KAFKA


@dataclass(frozen=True)
class Placements:
    """The placements of the groups and of the transactional ids of a batch."""

    groups: Placement = Placement()
    transactions: Placement = Placement()


@dataclass(frozen=True)
class PlacedChanges:
    """Change rows of a batch: those that decide state, and those of other partitions; `places` are the latter's."""

    speaking: pa.Table
    elsewhere: pa.Table = field(default_factory=SCHEMA.empty_table)
    places: frozenset[KeyPlace] = frozenset()


@dataclass(frozen=True)
class _Keys:
    """The keys of a batch, and where the batch and the tables have them."""

    places: set[KeyPlace]
    previous: PreviousBatch
    #: Tables that have every place with state of the keys, and their column with the key.
    tables: Sequence[str]
    name: str
    #: Log partitions that the tables have read.
    read: Iterable[int]
    #: Key, partition and time (ms) of the values in the batch.
    values: Callable[[Sequence[str]], Iterable[tuple[str, int, int]]]
    partitioner: Partitioner = KAFKA

    def place(self, before: int | None, partitions: int | None, stated: int | None) -> Placement:
        """Place the keys. `before` is the count so far; `partitions` and `stated` as in `place_groups`."""
        stored: set[KeyPlace] = set()
        if partitions is None:
            count = stated or before
        else:
            if before is None:
                stored = self._stored()
            count = count_in_force(before, partitions, self.places | stored, self.partitioner)
        if count is None:
            has_grown = partitions is not None and bool(misplaced(self.places | stored, partitions, self.partitioner))
            return replace(self._by_newest_value(), has_grown=has_grown)
        if count != before:
            stored = stored or self._stored()
        elsewhere, moved = (frozenset(misplaced(places, count, self.partitioner)) for places in (self.places, stored))
        has_grown = partitions is not None and partitions > count
        return Placement(count, elsewhere, moved, has_grown, self.partitioner)

    def _stored(self) -> set[KeyPlace]:
        return {place for table in self.tables for place in self.previous.places(table, self.name)}

    def _by_newest_value(self) -> Placement:
        """Without a count, the partition with the newest value of a key speaks for it."""
        if len({place.partition for place in self.places}.union(self.read)) < 2:
            return Placement()
        stored = self._stored_times()
        first: dict[str, int] = {}
        # usually none: the log of a topic that has not grown
        several = {key for key, partition in (*self.places, *stored) if first.setdefault(key, partition) != partition}
        if not several:
            return Placement()
        contested: dict[str, dict[int, int]] = {key: {} for key in several}
        for place in self.places | stored.keys():
            if place.key in several:
                contested[place.key][place.partition] = stored.get(place, -1)
        for key, partition, at_ms in self.values(sorted(several)):
            if key in several:
                contested[key][partition] = max(at_ms, contested[key][partition])
        others = {
            KeyPlace(key, partition)
            for key, found in contested.items()
            for partition in found.keys() - {speaking_partition(found)}
        }
        return Placement(None, frozenset(others & self.places), frozenset(others & stored.keys()))

    def _stored_times(self) -> dict[KeyPlace, int]:
        """The places of the keys in the tables, with the time (ms) of their newest record."""
        found: dict[KeyPlace, int] = {}
        wanted = {place.key for place in self.places}
        for table in self.tables:
            rows = self.previous.rows(table, [self.name, "log_partition", "record_timestamp"], **{self.name: wanted})
            columns = (rows[self.name], rows["log_partition"], ms_of(rows["record_timestamp"]))
            for key, partition, at_ms in zip(*(column.to_pylist() for column in columns), strict=True):
                place = KeyPlace(key, partition)
                found[place] = max(at_ms, found.get(place, -1))
        return found


def place_groups(
    changes: pa.Table,
    commits: CommitRows,
    previous: PreviousBatch,
    partitions: int | None,
    stated: int | None,
    partitioner: Partitioner = KAFKA,
) -> Placement:
    """Find out which of the places in change rows and tables speak for their groups.

    `partitions` is the number of partitions that the source knows, `stated` the one that places groups without it; None if
    unknown. `commits` reads rows of kind `commit` that are not in `changes`. `partitioner` is that of the brokers.
    """
    read = previous.batch.next_offsets if previous.batch else ()
    values = partial(_value_times, changes, commits)
    keys = _Keys(places_of(changes), previous, _PLACES_OF_STATE, "group_id", read, values, partitioner)
    return keys.place(previous.log_partition_count, partitions, stated)


def place_transactions(
    reductions: Iterable[TransactionReduction], previous: PreviousBatch, partitions: int | None, stated: int | None
) -> Placement:
    """As `place_groups`, for the transactional ids of `__transaction_state`."""
    written = [
        (KeyPlace(key, each.partition), -1 if state is None else at_ms)
        for each in reductions
        for key, state, at_ms in zip(
            *(each.transactions[name].to_pylist() for name in ("transactional_id", "state", "record_timestamp")), strict=True
        )
    ]
    read = (previous.batch.transaction_offsets or ()) if previous.batch else ()
    keys = _Keys(
        {place for place, _ in written},
        previous,
        ("transactions",),
        "transactional_id",
        read,
        lambda _keys: ((*place, at_ms) for place, at_ms in written),
    )
    return keys.place(previous.transaction_partition_count, partitions, stated)


def known_partitions(changes: pa.Table) -> int | None:
    """The number of partitions of the topic by the ranges of a batch; None if the source does not know it."""
    found: int | None = pc.max(of_kind(changes, ChangeKind.RANGE)["log_partitions"]).as_py()
    return found


def places_of(changes: pa.Table) -> set[KeyPlace]:
    """The places of the groups in change rows."""
    named = changes.select(["group_id", "log_partition"]).filter(pc.is_valid(changes["group_id"]))
    return _pairs(named) | _pairs(_of_records(changes).select(["group_id", "log_partition"]))


def split_changes(changes: pa.Table, placement: Placement) -> PlacedChanges:
    """Separate the change rows of places that speak for their groups from the others."""
    if not placement.elsewhere:
        return PlacedChanges(changes)
    groups = changes["group_id"].combine_chunks()
    is_record = pc.is_in(changes["kind"], pa.array(_RECORDS))
    keys = pc.if_else(is_record, changes["key"], pa.scalar(None, pa.binary())).combine_chunks()
    groups = pc.coalesce(groups, _groups_of(keys))
    is_elsewhere = at_places(groups, changes["log_partition"], placement.elsewhere)
    named = changes.set_column(changes.schema.get_field_index("group_id"), SCHEMA.field("group_id"), groups)
    return PlacedChanges(changes.filter(pc.invert(is_elsewhere)), named.filter(is_elsewhere), placement.elsewhere)


def at_places(keys: pa.ChunkedArray | pa.Array, partitions: pa.ChunkedArray, places: Collection[KeyPlace]) -> pa.Array:
    """For each row, whether its key and log partition are one of `places`."""
    found = (pair in places for pair in zip(keys.to_pylist(), partitions.to_pylist(), strict=True))
    return pa.array(list(found), pa.bool_())


def _value_times(changes: pa.Table, commits: CommitRows, groups: Sequence[str]) -> Iterable[tuple[str, int, int]]:
    """Group, partition and time (ms) of the values in change rows."""
    columns = ["group_id", "log_partition", "record_timestamp"]
    values = pa.concat_tables([changes.filter(pc.is_in(changes["kind"], pa.array(_VALUES))), commits(groups)]).select(columns)
    records = _of_records(changes)
    for table in (values, records.filter(pc.is_valid(records["value"])).select(columns)):
        newest = (
            table.set_column(2, "at_ms", ms_of(table["record_timestamp"])).group_by(columns[:2]).aggregate([("at_ms", "max")])
        )
        yield from zip(*(newest[name].to_pylist() for name in (*columns[:2], "at_ms_max")), strict=True)


def _of_records(changes: pa.Table) -> pa.Table:
    """Change rows of decodable group records, with their groups."""
    records = pa.concat_tables([of_kind(changes, kind) for kind in (ChangeKind.RECORD, ChangeKind.STATE_ONLY)])
    groups = _groups_of(records["key"].combine_chunks())
    named = records.set_column(records.schema.get_field_index("group_id"), SCHEMA.field("group_id"), groups)
    return named.filter(pc.is_valid(groups))


def _groups_of(keys: pa.Array) -> pa.Array:
    """Groups of the keys of group records; null for other keys."""
    distinct = keys.unique().to_pylist()
    outcomes = (None if key is None else decode(key, None) for key in distinct)
    groups = {
        key: group_id_of(outcome) if isinstance(outcome, Record) else None
        for key, outcome in zip(distinct, outcomes, strict=True)
    }
    return pa.array([groups[key] for key in keys.to_pylist()], pa.string())


def _pairs(table: pa.Table) -> set[KeyPlace]:
    distinct = table.group_by(table.schema.names).aggregate([])
    return {KeyPlace(*pair) for pair in zip(*(distinct[name].to_pylist() for name in table.schema.names), strict=True)}


def no_commits(_groups: Sequence[str]) -> pa.Table:
    """No commits besides those in the change rows."""
    return SCHEMA.empty_table()
