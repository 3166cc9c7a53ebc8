"""`grouplake mcp`: answer agents over the Model Context Protocol on standard input and output."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.extras import MCP
from pipelines.cli.options import add_clusters, add_conf

_EXAMPLES = """examples:
  grouplake mcp --tables /data/groups
  grouplake mcp --tables east=/data/east --tables west=s3://bucket/west

A client of the Model Context Protocol starts this command, and closes standard input to end it. It needs the extra `mcp`:
pip install 'grouplake[mcp]'. The tools only read the tables and never ask Kafka. Limits of queries are those of the section
[dashboard] of the configuration. `dashboard.mcp = true` answers the same tools at /mcp of the page.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_clusters(parser)
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.dashboard.agents.stdio import serve_pipe
    from pipelines.dashboard.options import dashboard_options
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.progress import print_progress

    configuration = load_configuration(options.conf)
    sections = configuration.dashboard, configuration.metrics, configuration.lag
    serve_pipe(dashboard_options(options.tables, None, *sections), print_progress)
    return 0


COMMAND = Command(
    "mcp",
    "answer agents (Model Context Protocol) from tables",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
    extra=MCP,
)
