"""`grouplake example`: write the example log and print its source address."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import folder

_EXAMPLES = """examples:
  grouplake example /tmp/log
  grouplake run --source segments:/tmp/log --tables /tmp/groups --expiry apply --now 1795834200000
  grouplake sql --tables /tmp/groups "SELECT group_id, state, member_count FROM groups"
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", type=folder, metavar="DIR", help="new or empty folder")


def _run(options: Namespace) -> int:
    from pipelines.example.example_log import write_example_log

    print(write_example_log(options.directory))
    return 0


COMMAND = Command("example", "write an example log of a Kafka 4.1.1 broker", _EXAMPLES, _add_arguments, _run)
