"""What a batch does to one table, the same for both writers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pipelines.tables import definitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Marks source rows of a merge whose target row goes.
DELETED = "_deleted"

#: Log offset at which the operation of a merge's source row took effect; a target row of a newer record stays as it is.
EFFECTIVE_OFFSET = "_effective_offset"


@dataclass(frozen=True)
class TableWrite:
    """Rows for one table: appended, or merged by its key when the table has one.

    Rows of a merge have two columns more, `_deleted` and `_effective_offset`; a deletion needs only the key besides.
    A row never replaces a newer one: the merge compares `_effective_offset` with the `log_offset` that is there.
    """

    table: str
    rows: "pa.Table | DataFrame"


class Writer(Protocol):
    """One of the two ways into a Delta table."""

    def write(self, write: TableWrite) -> int:
        """Applies `write` to the table at the version that this job has left it at, and returns the new version.

        Raises:
            AnotherWriter: another job has taken the tables over.
        """
        ...


def source_names(table: str) -> list[str]:
    """Columns of the source rows of a merge into `table`."""
    return [*definitions.table(table).schema.names, EFFECTIVE_OFFSET, DELETED]


def source_schema(table: str) -> pa.Schema:
    """Their Arrow schema: a deletion has no values, so everything is nullable."""
    nullable = [field.with_nullable(True) for field in definitions.table(table).schema]
    return pa.schema([*nullable, pa.field(EFFECTIVE_OFFSET, pa.int64()), pa.field(DELETED, pa.bool_())])


def merge_conditions(table: str) -> tuple[str, str, str]:
    """Conditions of a merge's clauses, target `t` and source `s`: matched and deleted, matched and updated, inserted."""
    newer = f" AND s.{EFFECTIVE_OFFSET} >= t.log_offset" if "log_offset" in definitions.table(table).schema.names else ""
    return f"s.{DELETED}{newer}", f"NOT s.{DELETED}{newer}", f"NOT s.{DELETED}"
