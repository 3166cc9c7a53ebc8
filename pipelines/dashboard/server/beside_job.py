"""The page in the process of a job: a thread with an event loop of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.dashboard.options import DashboardOptions
from pipelines.dashboard.server.page_frame import JobLines
from pipelines.dashboard.server.server import DashboardServer
from pipelines.metrics.site import Site
from pipelines.runtime.progress import Progress


@contextmanager
def dashboard_beside(options: DashboardOptions, progress: Progress, job_lines: JobLines) -> Iterator[Site]:
    """Serve the page meanwhile. Its errors are reported and never end the job. Yields the snapshots, for `/metrics` of the job.

    Until the tables have a batch, the page shows `job_lines`.

    Raises:
        DashboardError: the address cannot be used.
    """
    # before the first batch there are no tables, which is not an error of the job
    site = Site(options.roots, options.metrics, options.poll_seconds, lambda _: None)
    server = DashboardServer(options, site, progress, job_lines=job_lines)
    thread = threading.Thread(target=_run, args=(server, progress), name="dashboard", daemon=True)
    thread.start()
    site.start()
    scheme = "https" if options.security.tls else "http"
    progress(f"dashboard: {scheme}://{server.address}/")
    try:
        yield site
    finally:
        server.stop()
        thread.join()
        site.close()


def _run(server: DashboardServer, progress: Progress) -> None:
    try:
        server.run()
    except Exception as error:  # the job continues without its page
        progress(f"dashboard: ended with {type(error).__name__}: {' '.join(str(error).split())}")
