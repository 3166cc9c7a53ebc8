"""`grouplake restore`, and the check of backups: every file is compared with its size and checksum."""

from collections.abc import Iterable

from pipelines.query.check import Violation, check
from pipelines.runtime.errors import TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.progress import Progress
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.store import TableStore
from pipelines.tables.writer_lock import FILE, writer_lock
from pipelines.upkeep.backup.create import Digest
from pipelines.upkeep.backup.manifest import Manifest, StoredFile, chosen, megabytes

#: The folder is one of tables once these files are there.
_LAST = "batches/_delta_log/"


def restore(root: str, backups_root: str, backup_id: str | None, progress: Progress) -> tuple[Manifest, list[Violation]]:
    """Write the tables of a backup into an empty folder. Returns the backup, and the broken rules of `grouplake check`.

    The log of `batches` is written last and in reverse, so that an interrupted restore leaves no tables that can be opened.

    Raises:
        UsageError: no such backup, or the folder is not empty.
        TablesError: a file of the backup is missing or damaged, or a file cannot be written.
    """
    backups = FolderFiles(backups_root)
    backup = chosen(backups, backup_id)
    tables = FolderFiles(root)
    present = next((name for name in tables.sizes() if name != FILE), None)
    if present is not None:
        raise UsageError(f"cannot restore into {root}: it has the file {present}; name a new or empty folder")
    with writer_lock(root, "grouplake restore"):
        last_ones = sorted((path for path in backup.files if path.startswith(_LAST)), reverse=True)
        for path in (*sorted(backup.files.keys() - set(last_ones)), *last_ones):
            try:
                _restore_file(backups, backup.files[path], tables, path)
            except TablesError:
                for each in last_ones:
                    tables.remove(each)
                raise
        failpoint("restored")
        findings = check(root)
    last = TableStore(root).last_batch()
    assert last is not None, "a backup has a batch"
    progress(f"restored batch {backup.batch_id} of {backup.finished_at}: {len(backup.files)} files, {megabytes(backup.size)}")
    return backup, findings


def damaged(backups: FolderFiles, found: Iterable[Manifest]) -> list[str]:
    """One line for each file of the backups that is missing, or has another size or checksum. A shared file is read once."""
    lines = []
    files = {file.object: file for each in found for file in each.files.values()}
    for name in sorted(files):
        digest = Digest()
        try:
            for _ in digest.of(backups.chunks(name)):
                pass
        except FileNotFoundError:
            lines.append(f"{name} is missing")
            continue
        difference = _difference(digest, files[name])
        if difference:
            lines.append(f"{name} {difference}")
    return lines


def _restore_file(backups: FolderFiles, file: StoredFile, tables: FolderFiles, path: str) -> None:
    digest = Digest()
    try:
        tables.write(path, digest.of(backups.chunks(file.object)))
    except FileNotFoundError as error:
        raise TablesError(f"cannot restore {path}: {backups.root}/{file.object} is missing; use another backup") from error
    difference = _difference(digest, file)
    if difference:
        tables.remove(path)
        raise TablesError(f"cannot restore {path}: {backups.root}/{file.object} {difference}; use another backup")


def _difference(digest: Digest, file: StoredFile) -> str | None:
    if digest.size != file.size:
        return f"has {digest.size} bytes instead of {file.size}"
    if digest.sha256 != file.sha256:
        return "has another checksum than its manifest"
    return None
