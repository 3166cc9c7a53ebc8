"""`grouplake maintain`, alone or beside a job."""

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
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.progress import print_progress
    from pipelines.upkeep.beside_job import maintain_beside_job
    from pipelines.upkeep.maintain import Maintenance

    limits = Maintenance.of(load_configuration(options.conf))
    maintain_beside_job(options.tables, limits, lambda: datetime.now(UTC), print_progress)
    return 0


COMMAND = Command(
    "maintain", "compact tables, delete old history, remove unneeded files", _EXAMPLES, _add_arguments, _run, writes=("tables",)
)
