"""`grouplake coordinator`: serve until a signal."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.extras import COORDINATOR
from pipelines.cli.options import add_conf, positive
from pipelines.runtime.errors import UsageError

_EXAMPLES = """examples:
  grouplake coordinator --listen 127.0.0.1:9092 --log segments:/var/lib/grouplake
  grouplake coordinator --listen 0.0.0.0:9092 --log segments:/var/lib/grouplake --conf coordinator.toml
  grouplake coordinator --listen 0.0.0.0:9092 --log segments:/var/lib/grouplake --nodes 2
  grouplake coordinator --listen 0.0.0.0:9092 --log kafka://broker:9092/grouplake_offsets --conf node-1.toml
  curl http://127.0.0.1:9404/health

It is ready when it prints "listening on …". SIGTERM or Ctrl-C ends it after the pending requests, a second one immediately.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--listen", required=True, metavar="HOST:PORT", help="address for clients; port 0: any free port")
    parser.add_argument(
        "--log",
        required=True,
        metavar="segments:DIR|kafka://HOST:PORT/TOPIC",
        help="the log: a folder, or a compacted topic that several coordinators share; created if missing",
    )
    parser.add_argument(
        "--nodes",
        type=positive,
        default=1,
        metavar="N",
        help="processes that share the folder, at the port of --listen and the next ones, for groups only (default 1)",
    )
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.job.coordinator_process import coordinator_options, run_coordinator, until_signalled
    from pipelines.runtime.configuration import load_configuration

    scheme, _, directory = options.log.partition(":")
    configuration = load_configuration(options.conf)
    if scheme == "kafka":
        from pipelines.job.clustered_coordinator import cluster_options, run_node

        if options.nodes > 1:
            raise UsageError(f"--nodes {options.nodes} is for a folder: start one command per node of a log topic")
        run_node(cluster_options(options.listen, options.log, configuration), until_signalled)
        return 0
    if scheme != "segments" or not directory:
        raise UsageError(f"--log {options.log!r}: expected a folder, segments:DIR, or a topic, kafka://HOST:PORT/TOPIC")
    if options.nodes > 1:
        from pipelines.job.node_supervisor import run_nodes

        run_nodes(options.listen, directory, configuration.coordinator, options.nodes)
        return 0
    run_coordinator(coordinator_options(options.listen, directory, configuration.coordinator), until_signalled)
    return 0


COMMAND = Command(
    "coordinator",
    "run a group coordinator for Kafka clients, with its own log",
    _EXAMPLES,
    _add_arguments,
    _run,
    extra=COORDINATOR,
    writes=("log",),
)
