"""Printing of queries and their answers."""

from textwrap import TextWrapper

import pyarrow as pa

from pipelines.query.output import to_stdout

_FOLD = TextWrapper(120, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def print_title(title: str) -> None:
    """Print a title above answers."""
    print(f"\n━━ {title}")


def print_answer(query: str, answer: pa.Table) -> None:
    """Print a query, and its answer as a table."""
    print(f"\n{_FOLD.fill(query)}\n", flush=True)
    to_stdout(answer, "table")
