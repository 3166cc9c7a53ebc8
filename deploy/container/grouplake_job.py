"""The command `grouplake` as a file, for `spark-submit` and everything that is built on it."""

import sys

from pipelines.cli import main

if __name__ == "__main__":
    sys.exit(main())
