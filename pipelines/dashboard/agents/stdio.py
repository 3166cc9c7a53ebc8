"""The tools on standard input and output, for a client that starts this process."""

from dataclasses import replace

from pipelines.dashboard.agents.agent_server import AgentServer
from pipelines.dashboard.options import DashboardOptions
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.dashboard.state.teams import Teams
from pipelines.metrics.site import Site
from pipelines.runtime.progress import Progress


def serve_pipe(options: DashboardOptions, progress: Progress) -> None:
    """Answer until the client closes standard input. `sql` is on: the user of this process can read the tables."""
    site = Site(options.roots, options.metrics, options.poll_seconds, progress)
    moments = MomentStore(site, options.memory_bytes, Teams(options.owners))
    server = AgentServer(site, moments, replace(options.sql, is_on=True), options.mcp_seconds)
    # before the first call, which would find nothing loaded
    site.refresh()
    site.start()
    try:
        server.protocol.run("stdio")
    finally:
        site.close()
