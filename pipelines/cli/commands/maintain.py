"""`grouplake maintain`: compact the tables."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from pipelines.cli.command import Command
from pipelines.cli.options import add_conf, add_tables

_EXAMPLES = """examples:
  grouplake maintain --tables /data/groups
  grouplake maintain --tables /data/groups --conf production
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.configuration import load_configuration
    from pipelines.lag.settings import lag_keep
    from pipelines.maintain import Maintenance
    from pipelines.maintain import maintain as keep_small
    from pipelines.progress import print_progress

    configuration = load_configuration(options.conf)
    limits = Maintenance(**configuration.maintain, keep=lag_keep(configuration.lag))
    keep_small(options.tables, limits, datetime.now(UTC), print_progress)
    return 0


COMMAND = Command("maintain", "compact tables, delete old history, remove unneeded files", _EXAMPLES, _add_arguments, _run)
