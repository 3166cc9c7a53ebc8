"""The layout of a folder of tables: a version with two numbers, as a property of the table `batches`.

A change that adds tables or nullable columns is additive and raises the second number: the next writer migrates the folder in
place, and earlier versions of Grouplake can still read it. Any other change raises the first number: `grouplake rebuild` writes
the tables anew (docs/adr/0036).
"""

import re
from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pipelines.runtime.errors import TablesError, UsageError
from pipelines.runtime.version import build_version
from pipelines.tables.object_stores import reason_of

#: Properties of `batches`.
PROPERTY = "grouplake.layout"
WRITTEN_BY = "grouplake.version"

_TEXT = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")


class LayoutVersion(NamedTuple):
    """A layout version, ordered."""

    breaking: int
    additive: int

    def __str__(self) -> str:
        return f"{self.breaking}.{self.additive}"


#: Folders without the property: version 0.1.0 before it had layouts.
FIRST = LayoutVersion(1, 0)

#: The layout that this version writes.
LAYOUT = LayoutVersion(1, 10)


def store_layout(batches: DeltaTable, root: str) -> None:
    """Store the present layout. Raises TablesError if `batches` cannot be written."""
    properties = {PROPERTY: str(LAYOUT), WRITTEN_BY: build_version()}
    try:
        batches.alter.set_table_properties(properties, raise_if_not_exists=False)
    except DeltaError as error:
        raise TablesError(f"cannot store the layout of the tables under {root}: {reason_of(error)}") from error


def layout_of(batches: DeltaTable, root: str) -> LayoutVersion:
    """The layout of the folder of `batches`. Raises UsageError for a property that is not a layout."""
    text = batches.metadata().configuration.get(PROPERTY)
    if text is None:
        return FIRST
    found = _TEXT.fullmatch(text)
    if found is None:
        raise UsageError(
            f"the tables under {root} have the unknown layout {text!r}: another program changed {PROPERTY} of batches"
        )
    return LayoutVersion(int(found[1]), int(found[2]))


def expect_readable(batches: DeltaTable, root: str) -> None:
    """Raise UsageError unless this version can read the folder."""
    layout = layout_of(batches, root)
    if layout.breaking > LAYOUT.breaking:
        raise UsageError(
            f"the tables under {root} have layout {layout}, {_origin(batches)}; Grouplake {build_version()} reads layouts "
            f"up to {LAYOUT}: use the newer version, or restore a backup that was made before the upgrade"
        )
    if layout.breaking < LAYOUT.breaking:
        raise UsageError(
            f"the tables under {root} have layout {layout}, and Grouplake {build_version()} reads {LAYOUT}: "
            "run `grouplake rebuild` on them, or use the version that wrote them"
        )


def expect_writable(batches: DeltaTable, root: str) -> None:
    """Raise UsageError if a newer version has migrated the folder: this one would leave its additions empty."""
    layout = layout_of(batches, root)
    if layout > LAYOUT:
        raise UsageError(
            f"the tables under {root} have layout {layout}, {_origin(batches)}; Grouplake {build_version()} can read them, "
            f"but writes layout {LAYOUT} and would leave the additions empty: use the newer version"
        )


def _origin(batches: DeltaTable) -> str:
    version = batches.metadata().configuration.get(WRITTEN_BY, "")
    return f"written by Grouplake {version}" if re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", version) else "written by a newer Grouplake"
