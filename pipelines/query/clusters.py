"""Several folders of tables in one statement: a schema per cluster, and plain names over all clusters."""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import QueryBuilder

from pipelines.query.engine import (
    NO_TABLE,
    PUBLIC,
    AsOf,
    Snapshot,
    batch_at,
    expect_reading,
    is_missing_file,
    quoted,
    unknown_name,
)
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.tables.damage import damage_in, damaged_tables
from pipelines.tables.location import expect_cluster_name, is_named, parse_roots
from pipelines.tables.query_rows import rows_of
from pipelines.tables.store import Batch, TableStore, gone, literal

#: The column that a plain name has first: the cluster of the row.
CLUSTER = "cluster"

#: Names with a meaning of their own in a statement.
_RESERVED = {PUBLIC, "information_schema", "datafusion", *definitions.WRITE_ORDER, *definitions.ALERTS, *definitions.VIEWS}


class ClusterSnapshot:
    """The tables and views of several clusters, each at the versions of one batch of its own.

    `east.lag` is a table of the cluster `east`. The plain name `lag` has the rows of all clusters, with the column `cluster`.
    """

    def __init__(self, stores: Mapping[str, tuple[TableStore, Batch]]) -> None:
        self._builder = QueryBuilder()
        self.batches: Mapping[str, Batch] = {name: batch for name, (_, batch) in stores.items()}
        self._of_cluster = {}
        self._united: set[str] = set()
        for name, (store, batch) in stores.items():
            self._builder.execute(f"CREATE SCHEMA {quoted(name)}").read_all()
            self._of_cluster[name] = Snapshot(store, batch, builder=self._builder, schema=name)

    @classmethod
    def open(cls, roots: Mapping[str, str], as_of: AsOf = None) -> "ClusterSnapshot":
        """The tables under `roots`, by cluster, each at its last complete batch or at its batch as of a time.

        Raises:
            UsageError: an invalid name, a folder without tables, no such batch, or a batch id for more than one cluster.
        """
        for name in roots:
            _expect_name(name)
        if len(roots) > 1 and _is_batch_id(as_of):
            raise UsageError(f"batch {as_of} of {len(roots)} clusters: each cluster has its own batch ids; use a time instead")
        stores = {name: TableStore(root) for name, root in roots.items()}
        return cls({name: (store, batch_at(store, as_of)) for name, store in stores.items()})

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that every cluster has."""
        names = (*definitions.WRITE_ORDER, *definitions.ALERTS)
        return tuple(name for name in names if all(name in each.tables for each in self._of_cluster.values()))

    @property
    def views(self) -> tuple[str, ...]:
        """The views that every cluster has."""
        return tuple(name for name in definitions.VIEWS if all(name in each.views for each in self._of_cluster.values()))

    def query(self, sql: str) -> pa.Table:
        """Return the rows of one reading statement.

        Raises:
            UsageError: not a reading statement, or DataFusion rejects it.
            DamagedTables: a file of the tables is damaged.
        """
        expect_reading(sql)
        self._provide(sql)
        try:
            return rows_of(self._builder.execute(sql))
        except Exception as error:  # DataFusion's errors reach Python as bare Exception
            damage = damage_in(error)
            if damage is not None and not is_missing_file(error):
                raise damaged_tables(damage, " or ".join(each.root for each in self._of_cluster.values())) from error
            raise UsageError(self._message(error)) from error

    def _provide(self, sql: str) -> None:
        named = [name for name in self._of_cluster if name in sql]
        for name in dict.fromkeys(re.findall(r"\w+", sql)):
            for cluster in named:
                self._of_cluster[cluster].provide(name)
            if _is_plain(name, sql) and name not in self._united and name in (*self.tables, *self.views):
                self._unite(name)

    def _unite(self, name: str) -> None:
        self._united.add(name)
        for snapshot in self._of_cluster.values():
            snapshot.provide(name)
        selects = (f"SELECT {literal(each)} AS {CLUSTER}, * FROM {quoted(each)}.{name}" for each in self._of_cluster)
        # by name: a folder that an earlier version wrote may have fewer columns
        self._builder.execute(f"CREATE VIEW {name} AS {' UNION ALL BY NAME '.join(selects)}").read_all()

    def _message(self, error: Exception) -> str:
        if is_missing_file(error):
            return gone(f"a batch of {', '.join(f'{name}: {batch.batch_id}' for name, batch in self.batches.items())}")
        found = NO_TABLE.search(str(error))
        if found is None:
            return f"query failed: {' '.join(str(error).split())}"
        schema, table = found.groups()
        if schema == PUBLIC:
            missing = {name: snapshot.missing(table) for name, snapshot in self._of_cluster.items()}
            found_in = next(((name, text) for name, text in missing.items() if text), None)
            return f"cluster {found_in[0]}: {found_in[1]}" if found_in else unknown_name(table, (*self.tables, *self.views))
        if schema not in self._of_cluster:
            return f"no cluster {schema!r}: use one of {', '.join(self._of_cluster)}"
        of_cluster = self._of_cluster[schema]
        return f"cluster {schema}: {of_cluster.missing(table) or unknown_name(table, (*of_cluster.tables, *of_cluster.views))}"


#: Both have `query`, `tables`, `views`, and `batches` by cluster.
AnySnapshot = Snapshot | ClusterSnapshot


def open_snapshot(roots: Mapping[str, str], as_of: AsOf = None) -> AnySnapshot:
    """The tables of one folder, whose name is empty, or of named clusters."""
    if set(roots) == {""}:
        return Snapshot.open(roots[""], as_of)
    return ClusterSnapshot.open(roots, as_of)


def queried_roots(given: Sequence[str]) -> dict[str, str]:
    """Cluster → folder, from values of `--tables` as `parse_roots` reads them. A single DIR has the empty name: no schema.

    Raises:
        UsageError: an invalid name, a name without a folder, or two clusters with one name.
    """
    if len(given) == 1 and not is_named(given[0]):
        return {"": given[0]}
    return parse_roots(given)


def _expect_name(name: str) -> None:
    expect_cluster_name(name)
    if name in _RESERVED:
        raise UsageError(f"invalid cluster name {name!r}: it is a table, a view or a schema; use NAME=DIR")


def _is_batch_id(as_of: AsOf) -> bool:
    return isinstance(as_of, int) or (isinstance(as_of, str) and as_of.isascii() and as_of.isdigit())


def _is_plain(name: str, sql: str) -> bool:
    """True if `name` stands somewhere in `sql` without a schema or alias before it."""
    return re.search(rf"(?<!\.)(?<!\.\")\b{name}\b", sql) is not None
