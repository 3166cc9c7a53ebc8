"""`grouplake rebuild`: write the tables anew and switch readers to them."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.extras import LOG
from pipelines.cli.options import add_conf, add_tables, add_transactions

_EXAMPLES = """examples:
  grouplake rebuild --tables /data/groups
  grouplake rebuild --tables /data/groups --source kafka://broker1:9092 --conf kafka
  grouplake rebuild --tables /data/groups --delete-old
  grouplake rebuild --tables /data/groups --return-to-old
  grouplake rebuild --tables /data/groups --revert-features

With --source the current state is loaded from the log, and with --transactions that of transactional ids. Histories and samples
always come from the old tables, since a compacted log does not have them. Stop the job before, and start it afterwards: it
continues at its position.

Readers that open tables by path must use the new folder: the old tables are kept, but no reader opens them any more.
--return-to-old uses them again, without what was written since, and --delete-old deletes them.

With --revert-features only tables that another program has given a feature such as deletion vectors or column mapping change:
they become again what the last batch left, in place and without the log.
"""

#: Options that do something else than a rebuild, and what they only do.
_MODES = {
    "revert_features": "--revert-features only reverts features",
    "return_to_old": "--return-to-old only returns",
    "delete_old": "--delete-old only deletes",
}


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    parser.add_argument("--source", metavar="ADDRESS", help="kafka://HOST:PORT[,…]/TOPIC, segments:DIR or jsonl:FILE")
    add_transactions(parser, "with --source, also load the transactional ids from __transaction_state")
    parser.add_argument("--delete-old", action="store_true", help="only delete the tables that an earlier rebuild has replaced")
    parser.add_argument("--return-to-old", action="store_true", help="only use the tables before the last rebuild again")
    parser.add_argument(
        "--revert-features",
        action="store_true",
        help="only make tables readable again, in place, whose protocol another program has raised",
    )
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.errors import UsageError
    from pipelines.runtime.progress import print_progress
    from pipelines.source.address import parse_address
    from pipelines.upkeep.rebuild.rebuild import delete_old, rebuild, return_to_old
    from pipelines.upkeep.rebuild.revert_features import revert_features

    mode = next((name for name in _MODES if getattr(options, name)), None)
    if mode is not None:
        others = {"source", "transactions", *_MODES} - {mode}
        if any(getattr(options, name) not in (None, False) for name in others):
            raise UsageError(f"{_MODES[mode]}: use it alone (see grouplake rebuild --help)")
        {"revert_features": revert_features, "return_to_old": return_to_old, "delete_old": delete_old}[mode](
            options.tables, print_progress
        )
        return 0
    load_state = None
    if options.source is not None:
        LOG.expect("grouplake rebuild --source")
        from pipelines.upkeep.rebuild.log_state import LogState

        configuration = load_configuration(options.conf)
        transactions = options.transactions or configuration.job["transactions"] or None
        address = parse_address(options.source)
        load_state = LogState(address, configuration.kafka_options, print_progress, transactions).load
    rebuild(options.tables, load_state, print_progress)
    return 0


COMMAND = Command(
    "rebuild",
    "write the tables anew, after a change of their layout or a loss",
    _EXAMPLES,
    _add_arguments,
    _run,
    writes=("tables",),
)
