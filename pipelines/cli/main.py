"""Entry point. Exit codes: 0 done, 1 problem found or error, 2 bad usage or configuration, 130 interrupted."""

import io
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import suppress

from pipelines.cli.failures import reported
from pipelines.cli.parser import parser
from pipelines.runtime.cache.kernels import use_kernel_cache
from pipelines.runtime.hidden_pandas import hide_pandas
from pipelines.runtime.terminal_text import mask_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. An error is one line on standard error; with GROUPLAKE_TRACEBACK=1 it is a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower().replace("-", "") != "utf8":
        # results are data, often read by programs: their encoding must not depend on the locale
        sys.stdout.reconfigure(encoding="utf-8")
    options = None
    try:
        options = parser().parse_args(arguments)
        command = options.command
        if command.extra is not None:
            command.extra.expect(f"grouplake {command.name}")
        if arguments is None:
            # safe here: this process ends with the command
            hide_pandas()
        if command.compiles:
            use_kernel_cache()
        code = int(command.run(options) or 0)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the reader closed the pipe, as `head` does
        _discard_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except SystemExit:
        # of the parser: a bad argument, or --help
        raise
    except BaseException as error:
        written = () if options is None else options.command.writes
        found = reported(error, _arguments(options, ("tables",)), _arguments(options, written))
        if found is None or os.environ.get("GROUPLAKE_TRACEBACK"):
            raise
        with suppress(OSError):
            # it may be on the full disk
            print(f"grouplake: {mask_of(sys.stderr)(' '.join(str(found).split()))}", file=sys.stderr)
        _flush_output()
        return found.exit_code


def _arguments(options: Namespace | None, names: Iterable[str]) -> list[str]:
    """The folders that these arguments of a command name."""
    given = [getattr(options, name, None) for name in names]
    texts = [text for value in given for text in (value if isinstance(value, list) else [value]) if text]
    return [str(text).removeprefix("segments:") for text in texts]


def _flush_output() -> None:
    """Write the rest of the output. On a full disk Python would report a second error when it flushes at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Let standard output accept everything: Python flushes it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
