"""`grouplake backup`: copy the tables, and check the copies."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from pipelines.cli.command import Command
from pipelines.cli.options import folder, positive

_EXAMPLES = """examples:
  grouplake backup --tables /data/groups --to /backup/groups
  grouplake backup --tables s3://bucket/groups --to s3://backups/groups --keep 24
  grouplake backup --to /backup/groups --list
  grouplake backup --to /backup/groups --check && echo sound

A backup is the state of one batch. A job may be running. Backups in one folder share files: each copies only new ones.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", type=folder, metavar="DIR", help="folder (or object-store URI) of the tables")
    parser.add_argument("--to", type=folder, required=True, metavar="DIR", help="folder (or object-store URI) of the backups")
    parser.add_argument("--keep", type=positive, metavar="N", help="remove all but the newest N backups afterwards")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the backups")
    what.add_argument("--check", action="store_true", help="compare every file with its size and checksum (exit code 1: damaged)")


def _run(options: Namespace) -> int:
    from pipelines.runtime.errors import UsageError
    from pipelines.runtime.progress import print_progress
    from pipelines.tables.folder_files import FolderFiles
    from pipelines.upkeep.backup.create import make_backup, remove_old_backups
    from pipelines.upkeep.backup.manifest import manifests, megabytes
    from pipelines.upkeep.backup.restore import damaged

    if options.list or options.check:
        backups = FolderFiles(options.to)
        found = manifests(backups)
        for each in found if options.list else ():
            print(f"{each.id}  batch {each.batch_id} of {each.finished_at}  {len(each.files)} files  {megabytes(each.size)}")
        lines = damaged(backups, found) if options.check else []
        for line in lines:
            print(line)
        if options.check and not lines:
            print(f"{len(found)} backups are complete")
        return 1 if lines else 0
    if options.tables is None:
        raise UsageError("the argument --tables is required for a backup (see grouplake backup --help)")
    make_backup(options.tables, options.to, datetime.now(UTC), print_progress)
    if options.keep is not None:
        remove_old_backups(options.to, options.keep, print_progress)
    return 0


COMMAND = Command(
    "backup",
    "copy the tables of one batch, and check the copies",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
    writes=("to",),
)
