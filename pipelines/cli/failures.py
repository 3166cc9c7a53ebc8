"""Errors of a command as one line with its exit code: errors of Grouplake, full disks, damaged tables, errors of delta-rs."""

import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.errors import GrouplakeError
from pipelines.tables.damage import chain, damage_in, damaged_tables
from pipelines.tables.location import local_folder
from pipelines.tables.object_stores import reason_of

_STANDARD_OUTPUT = "standard output"
_FULL = {errno.ENOSPC: "no space left on device", errno.EDQUOT: "disk quota exceeded", errno.EFBIG: "file size limit exceeded"}
#: The same reasons in the messages of libraries: Rust and Arrow print the number, Java only the text.
_FULL_TEXTS = {number: re.compile(rf"\bos error {number}\b|\berrno {number}\b|{os.strerror(number)}", re.I) for number in _FULL}


def reported(error: BaseException, tables: Sequence[str], written: Sequence[str]) -> GrouplakeError | None:
    """The error that a command prints as one line; None for a defect of ours, which has to keep its traceback.

    `tables` and `written` are the folders of tables and those that the command writes.
    """
    full = _full_disk(error, written)
    if full is not None:
        return full
    if isinstance(error, GrouplakeError):
        return error
    damage = next((found for each in chain(error) if (found := damage_in(each))), None)
    if damage is not None and tables:
        return damaged_tables(damage, ", ".join(tables))
    if _is_of_delta_rs(error):
        return GrouplakeError(reason_of(error))
    return None


def _is_of_delta_rs(error: BaseException) -> bool:
    """True for an error of delta-rs: an object store's answer is an OSError without a number, a panic no Exception."""
    from deltalake.exceptions import DeltaError

    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, DeltaError) or type(error).__name__ == "PanicException"


def _full_disk(error: BaseException, folders: Iterable[str]) -> GrouplakeError | None:
    """The error of a full disk, if that is the cause."""
    for each in chain(error):
        number = each.errno if isinstance(each, OSError) and each.errno in _FULL else None
        number = number or next((number for number, text in _FULL_TEXTS.items() if text.search(str(each))), None)
        if number is not None:
            named = each.filename if isinstance(each, OSError) else None
            places = [str(Path(os.fsdecode(named)).parent)] if named else [*folders, *_of_every_command()]
            where = _place(places)
            return GrouplakeError(
                f"cannot write to {where}: {_FULL[number]}; free space there, or use another disk, and run the command again "
                "(complete batches and backups are not affected)"
            )
    return None


def _of_every_command() -> tuple[str, ...]:
    """Folders for files that are made again when they are needed."""
    return str(cache_root()), os.environ.get("TMPDIR", "/tmp")


def _place(folders: list[str]) -> str:
    """The folder that has the least free space, with that space."""
    places = {str(path): _existing(path) for folder in folders if (path := local_folder(folder)) is not None}
    free = {name: shutil.disk_usage(path).free for name, path in places.items()}
    if (of_output := _free_of_output()) is not None:
        free[_STANDARD_OUTPUT] = of_output
    if not free:
        return _STANDARD_OUTPUT
    fullest = min(free, key=lambda name: free[name])
    return f"{fullest} ({free[fullest] / 2**20:,.1f} MiB free now)"


def _existing(path: Path) -> Path:
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _free_of_output() -> int | None:
    """Free bytes of the disk that standard output is redirected to, None if it is no file."""
    try:
        descriptor = sys.stdout.fileno()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        found = os.fstatvfs(descriptor)
    except (OSError, ValueError):
        return None
    return found.f_bavail * found.f_frsize
