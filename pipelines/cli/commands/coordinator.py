"""`grouplake coordinator`: serve until a signal."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import add_conf
from pipelines.errors import UsageError

_EXAMPLES = """examples:
  grouplake coordinator --listen 127.0.0.1:9092 --log segments:/var/lib/grouplake
  grouplake coordinator --listen 0.0.0.0:9092 --log segments:/var/lib/grouplake --conf coordinator.toml
  curl http://127.0.0.1:9404/health

It is ready when it prints "listening on …". SIGTERM or Ctrl-C ends it after the pending requests, a second one immediately.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--listen", required=True, metavar="HOST:PORT", help="address for clients; port 0: any free port")
    parser.add_argument("--log", required=True, metavar="segments:DIR", help="folder of the log; created if missing")
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.configuration import load_configuration
    from pipelines.coordinator import coordinator_options, run_coordinator, until_signalled

    scheme, _, directory = options.log.partition(":")
    if scheme != "segments" or not directory:
        raise UsageError(f"--log {options.log!r}: expected a folder, segments:DIR")
    run_coordinator(coordinator_options(options.listen, directory, load_configuration(options.conf).coordinator), until_signalled)
    return 0


COMMAND = Command("coordinator", "run a group coordinator for Kafka clients, with its own log", _EXAMPLES, _add_arguments, _run)
