"""`grouplake restore`: write the tables of a backup into an empty folder."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.extras import LOG
from pipelines.cli.options import add_conf, add_tables, add_transactions, folder

_EXAMPLES = """examples:
  grouplake restore --from /backup/groups --tables /data/groups
  grouplake restore --from /backup/groups --tables /data/groups --backup 20260301T100000Z-4711
  grouplake restore --from /backup/groups --tables /data/groups --source kafka://broker1:9092

With --source the log is compared with the position of the tables: whether `grouplake run` can continue there.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="backups", type=folder, required=True, metavar="DIR", help="folder (or object-store URI) of the backups"
    )
    add_tables(parser)
    parser.add_argument("--backup", metavar="ID", help="id of the backup (default: the newest; see grouplake backup --list)")
    parser.add_argument("--source", metavar="ADDRESS", help="source of the tables, as for grouplake run")
    add_transactions(parser, "with --source, also compare __transaction_state")
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.progress import print_progress
    from pipelines.source.address import parse_address
    from pipelines.tables.store import TableStore
    from pipelines.upkeep.backup.restore import restore

    if options.source is not None:
        LOG.expect("grouplake restore --source")
    address = None if options.source is None else parse_address(options.source)
    configuration = load_configuration(options.conf)
    _, findings = restore(options.tables, options.backups, options.backup, print_progress)
    for found in findings:
        print(f"{found.rule}: broken {found.count} times, for example {found.example}")
    if address is not None:
        from pipelines.upkeep.backup.log_position import expect_logs_from

        transactions = options.transactions or configuration.job["transactions"] or None
        for line in expect_logs_from(address, transactions, configuration.kafka_options, TableStore(options.tables)):
            print_progress(line)
    return 1 if findings else 0


COMMAND = Command(
    "restore", "write the tables of a backup into an empty folder", _EXAMPLES, _add_arguments, _run, writes=("tables",)
)
