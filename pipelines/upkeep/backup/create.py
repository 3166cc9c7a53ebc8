"""`grouplake backup`: copies the files of the last batch, while a job may be running."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

from pipelines.runtime.errors import RemovedState, ReplacedTables, TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.progress import Progress
from pipelines.runtime.version import build_version
from pipelines.tables import definitions
from pipelines.tables.damage import DamagedTables, damage_in, damaged_tables
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.layout import layout_of
from pipelines.tables.location import local_folder
from pipelines.tables.store import TableStore
from pipelines.upkeep.backup.manifest import Manifest, StoredFile, manifests, megabytes
from pipelines.upkeep.backup.needed_files import data_files, log_files

#: A job removes log entries and files only hours after their replacement, so a further attempt finds all files.
_ATTEMPTS = 3


def make_backup(root: str, to: str, now: datetime, progress: Progress) -> Manifest:
    """Copy the tables as the last batch left them, and write the manifest last.

    Raises:
        UsageError: there are no tables or no batch yet, or `to` is in the folder of the tables.
        TablesError: files cannot be read or written, or differ from the log of their table.
    """
    store = TableStore(root)
    _expect_apart(store.folder, to)
    backups = FolderFiles(to)
    known = {path: file for each in manifests(backups) for path, file in each.files.items()}
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            made = _copied(store, backups, known, now)
            break
        except (FileNotFoundError, RemovedState, ReplacedTables, TablesError) as error:
            if attempt == _ATTEMPTS:
                if (damage := damage_in(error)) is not None:
                    raise damaged_tables(damage, store.folder) from error
                raise error if isinstance(error, DamagedTables) else _not_copied(store, error) from error
            store = TableStore(root)
    made.write(backups)
    new = [file for path, file in made.files.items() if path not in known]
    progress(
        f"backup {made.id} of batch {made.batch_id} ({made.finished_at}): {len(made.files)} files, {megabytes(made.size)}; "
        f"new: {len(new)} files, {megabytes(sum(file.size for file in new))}"
    )
    return made


def _not_copied(store: TableStore, error: Exception) -> TablesError:
    return TablesError(f"cannot copy the tables under {store.folder}: {error}")


def remove_old_backups(to: str, keep: int, progress: Progress) -> None:
    """Remove all but the newest `keep` backups, and the objects that no manifest names."""
    backups = FolderFiles(to)
    found = manifests(backups)
    for each in found[:-keep]:
        each.remove(backups)
        progress(f"backup {each.id} removed")
    failpoint("backup:manifests_removed")
    needed = {file.object for each in found[-keep:] for file in each.files.values()}
    for name in backups.sizes("objects").keys() - needed:
        backups.remove(name)


def _copied(store: TableStore, backups: FolderFiles, known: dict[str, StoredFile], now: datetime) -> Manifest:
    batches = store.table("batches")
    last = store.last_batch_of(batches)
    if last is None:
        raise UsageError(f"the tables under {store.root} have no complete batch yet")
    versions = {**last.versions, "batches": batches.version()}
    versions |= {name: store.table(name).version() for name in definitions.ALERTS if store.has(name)}
    files: dict[str, StoredFile] = {}
    for name, version in versions.items():
        # rebuilt tables are in a folder of their own, beside those of alerts
        source = FolderFiles(store.path(name).removesuffix(f"/{name}"))
        for path, size in data_files(name, batches if name == "batches" else store.at(name, version)).items():
            copied = known.get(path)
            if copied is None or (copied.size, copied.object) != (size, f"objects/{path}"):
                copied = _copy_data(source, backups, path, size)
            files[path] = copied
        for path in log_files(name, version, source):
            files[path] = _copy_log(source, backups, path)
        failpoint(f"backup:copied:{name}")
    return Manifest(
        id=f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{last.batch_id}",
        batch_id=last.batch_id,
        finished_at=last.finished_at.astimezone(UTC).isoformat(timespec="seconds"),
        layout=str(layout_of(batches, store.root)),
        written_by=build_version(),
        topic_id=store.topic_id(),
        next_offsets=dict(last.next_offsets),
        files=files,
    )


def _copy_data(source: FolderFiles, backups: FolderFiles, path: str, size: int) -> StoredFile:
    digest = Digest()
    backups.write(f"objects/{path}", digest.of(source.chunks(path)))
    if digest.size != size:
        raise damaged_tables(f"file {path} has {digest.size} bytes, but the log of its table names {size}", source.root)
    return StoredFile(f"objects/{path}", digest.size, digest.sha256)


def _copy_log(source: FolderFiles, backups: FolderFiles, path: str) -> StoredFile:
    digest = Digest()
    content = b"".join(digest.of(source.chunks(path)))
    table, _, file = path.rpartition("/")
    name = f"objects/{table}/{digest.sha256[:16]}-{file}"
    backups.write(name, content)
    return StoredFile(name, digest.size, digest.sha256)


class Digest:
    """Size and SHA-256 of pieces that pass through `of`."""

    def __init__(self) -> None:
        self.size = 0
        self._hash = hashlib.sha256()

    def of(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the pieces unchanged."""
        for piece in pieces:
            self.size += len(piece)
            self._hash.update(piece)
            yield piece

    @property
    def sha256(self) -> str:
        """The SHA-256 of all pieces so far, in hexadecimal digits."""
        return self._hash.hexdigest()


def _expect_apart(root: str, to: str) -> None:
    tables, backups = local_folder(root), local_folder(to)
    is_within = to.rstrip("/") == root or to.startswith(f"{root}/")
    if tables is not None and backups is not None:
        is_within = backups.resolve().is_relative_to(tables.resolve())
    if is_within:
        raise UsageError(f"cannot write backups to {to}: it is in the folder of the tables, {root}")
