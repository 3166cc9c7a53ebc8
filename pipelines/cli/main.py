"""Entry point. Exit codes: 0 done, 1 problem found or error, 2 bad usage or configuration, 130 interrupted."""

import io
import os
import sys
from collections.abc import Sequence

from pipelines.cache.kernels import use_kernel_cache
from pipelines.cli.parser import parser
from pipelines.cli.without_pandas import without_pandas
from pipelines.errors import GrouplakeError
from pipelines.tables.object_stores import reason_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. An error is one line on standard error; with GROUPLAKE_TRACEBACK=1 it is a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower().replace("-", "") != "utf8":
        # results are data, often read by programs: their encoding must not depend on the locale
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        options = parser().parse_args(arguments)
        command = options.command
        if arguments is None and not command.loads_pandas:
            # safe here: this process ends with the command
            without_pandas()
        if command.compiles:
            use_kernel_cache()
        code = int(command.run(options) or 0)
        sys.stdout.flush()
        return code
    except GrouplakeError as error:
        if os.environ.get("GROUPLAKE_TRACEBACK"):
            raise
        print(f"grouplake: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # the reader closed the pipe, as `head` does; without this, Python reports the error again when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # delta-rs reports an object store's answer as an OSError without a number
        if error.errno is not None or os.environ.get("GROUPLAKE_TRACEBACK"):
            raise
        print(f"grouplake: {reason_of(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
