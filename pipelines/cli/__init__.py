"""Command line. A command imports its modules when it runs, so `sql` and `check` never load Spark."""

from pipelines.cli.main import main

__all__ = ["main"]
