"""Write of a batch to one table, common to both writers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pipelines.tables import definitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Column of source rows of a merge: true to remove the target row.
DELETED = "_deleted"

#: Column of source rows of a merge: log offset at which the operation took effect. Target rows of newer records are kept.
EFFECTIVE_OFFSET = "_effective_offset"


@dataclass(frozen=True)
class TableWrite:
    """Rows for one table: appended, merged by its key when the table has one, or all rows of a replaced table.

    Rows of a merge have two more columns, `_deleted` and `_effective_offset`; a deletion needs only these and the key.
    A row never replaces a newer one: the merge compares `_effective_offset` with the `log_offset` of the target row.
    """

    table: str
    rows: "pa.Table | DataFrame"


class Writer(Protocol):
    """Interface of the two writers of Delta tables."""

    def write(self, write: TableWrite) -> int:
        """Apply `write` to the table at the last version of this job. Returns the new version.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        ...


def source_names(table: str) -> list[str]:
    """Columns of the source rows of a merge into `table`."""
    return [*definitions.table(table).schema.names, EFFECTIVE_OFFSET, DELETED]


def source_schema(table: str) -> pa.Schema:
    """Arrow schema of the source rows of a merge into `table`; all fields are nullable, because deletions have no values."""
    nullable = [field.with_nullable(True) for field in definitions.table(table).schema]
    return pa.schema([*nullable, pa.field(EFFECTIVE_OFFSET, pa.int64()), pa.field(DELETED, pa.bool_())])


def merge_conditions(table: str) -> tuple[str, str, str]:
    """Conditions of a merge's clauses, target `t` and source `s`: matched and deleted, matched and updated, inserted."""
    newer = f" AND s.{EFFECTIVE_OFFSET} >= t.log_offset" if "log_offset" in definitions.table(table).schema.names else ""
    return f"s.{DELETED}{newer}", f"NOT s.{DELETED}{newer}", f"NOT s.{DELETED}"
