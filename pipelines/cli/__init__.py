"""The command line. Each command imports what it needs when it runs, so that `sql` and `check` start no Spark."""

from pipelines.cli.main import main

__all__ = ["main"]
