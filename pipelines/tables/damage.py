"""Missing and damaged files of tables, recognised in the errors of delta-rs, DataFusion and Arrow.

Readers and writers pin versions, so a file that the newest batch names is never missing by design. The libraries report such a
file in words of their own, some of them without its name.
"""

import re
from collections.abc import Iterator

from pipelines.runtime.errors import TablesError

#: What to do about a table with a damaged or missing file.
REMEDY = (
    "stop the job, then restore a backup (`grouplake restore`), or load the state from the log "
    "(`grouplake rebuild --source ADDRESS`)"
)

_FILE = r"[^\s'\"/]+/[^\s'\"/]+\.parquet"
_NAMED = re.compile(rf"({_FILE})")
_MISSING = re.compile(rf"{_FILE}(?: not found|.*No such file or directory)", re.DOTALL)
_UNREADABLE = re.compile(
    r"Parquet error|Parquet magic bytes|Parquet file size|[Cc]orrupt|Couldn't deserialize thrift|Invalid Parquet"
)
#: Errors of Delta's kernel about the contents of a log.
_LOG = re.compile(r"Kernel error|Json error|[Ii]nvalid JSON|Parquet error|checkpoint", re.ASCII)
#: A store that does not answer, or a file that this user may not read: the file itself may be sound.
_OTHER_CAUSE = re.compile(r"Generic (?!LocalFileSystem|DeltaTable)\w+ error|os error (?!2\b)\d+|\[[Ee]rrno (?!2\b)\d+\]")


class DamagedTables(TablesError):
    """A file that the newest batch needs is missing or damaged."""


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, outermost first."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        yield found
        seen.add(id(found))
        found = found.__cause__ or found.__context__


def damage_in(error: BaseException) -> str | None:
    """Describe the file whose damage an error of a library reports, such as "file offsets/part-….parquet is damaged"."""
    text = str(error)
    if _OTHER_CAUSE.search(text):
        return None
    is_missing = _MISSING.search(text) is not None or (isinstance(error, FileNotFoundError) and ".parquet" in text)
    if not is_missing and not _UNREADABLE.search(text):
        return None
    named = _NAMED.search(text)
    return f"{f'file {named[1]}' if named else 'a data file'} is {'missing' if is_missing else 'damaged'}"


def is_damaged_log(error: BaseException) -> bool:
    """True if delta-rs read the log of a table, and could not make a table from it."""
    return _LOG.search(str(error)) is not None and not _OTHER_CAUSE.search(str(error))


def damaged_tables(damage: str, root: str) -> DamagedTables:
    """The error for the tables under `root` with such a file."""
    return DamagedTables(f"the tables under {root} are damaged: {damage}; {REMEDY}")
