"""Files that a table needs at one version: its data files, and the part of its log from the last checkpoint on."""

import re
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from pipelines.runtime.errors import TablesError
from pipelines.tables.folder_files import FolderFiles

_LOG_FILE = re.compile(r".*/_delta_log/([0-9]{20})\.(json|checkpoint\.parquet)")


def data_files(name: str, table: DeltaTable) -> dict[str, int]:
    """Size of each data file of the opened version, by its path below the folder of tables."""
    actions = pa.table(table.get_add_actions())
    paths = (f"{name}/{unquote(path)}" for path in actions["path"].to_pylist())
    return dict(zip(paths, actions["size_bytes"].to_pylist(), strict=True))


def log_files(name: str, version: int, files: FolderFiles) -> list[str]:
    """Paths of the newest checkpoint up to `version` and of the entries from it on.

    Raises:
        TablesError: entries are missing, which are removed while a log is listed or by another program.
    """
    entries: dict[int, str] = {}
    checkpoints: dict[int, str] = {}
    for path in files.sizes(f"{name}/_delta_log"):
        found = _LOG_FILE.fullmatch(path)
        if found and int(found[1]) <= version:
            (entries if found[2] == "json" else checkpoints)[int(found[1])] = path
    checkpoint = max(checkpoints, default=-1)
    missing = [number for number in range(checkpoint + 1, version + 1) if number not in entries]
    if missing:
        raise TablesError(f"entry {missing[0]} of the log of table {name} under {files.root} is missing")
    # the entry of the checkpoint itself, where it is still there: its time is that of the version
    kept = [path for number, path in entries.items() if number >= checkpoint]
    return sorted([*kept, *(path for number, path in checkpoints.items() if number == checkpoint)])
