"""`grouplake dashboard`: serve the page, metrics and Burrow's HTTP API from tables, until a signal."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.extras import DASHBOARD, MCP
from pipelines.cli.options import add_clusters, add_conf
from pipelines.cli.otlp_option import otlp_export_of

_EXAMPLES = """examples:
  grouplake dashboard --tables /data/groups
  grouplake dashboard --tables east=/data/east --tables west=s3://bucket/west --listen 127.0.0.1:8080
  grouplake example --history /tmp/shop && grouplake dashboard --tables /tmp/shop
  curl http://127.0.0.1:8080/metrics
  curl http://127.0.0.1:8080/v3/kafka/east/consumer/billing/lag
  grouplake dashboard --tables /data/groups --listen 0.0.0.0:8443 --conf dashboard.toml

It needs the extra `dashboard`: pip install 'grouplake[dashboard]'. It prints "listening on …" when it accepts connections, and
answers from memory: a new batch is loaded within `dashboard.poll_ms`. SIGTERM or Ctrl-C ends it after the pending requests.
An address that other machines reach needs TLS and authentication in the section [dashboard] of the configuration.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_clusters(parser)
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="address of the server; port 0: any free port (default: 127.0.0.1:8080)"
    )
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.dashboard.options import dashboard_options
    from pipelines.dashboard.server.server import serve
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.progress import print_progress

    configuration = load_configuration(options.conf)
    checked = dashboard_options(options.tables, options.listen, configuration.dashboard, configuration.metrics, configuration.lag)
    if checked.has_mcp:
        MCP.expect("dashboard.mcp = true")
    serve(checked, print_progress, otlp_export_of(configuration, print_progress, has_batches=False))
    return 0


COMMAND = Command(
    "dashboard",
    "serve the page, metrics and Burrow's HTTP API from tables",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
    extra=DASHBOARD,
)
