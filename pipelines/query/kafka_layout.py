"""Layout of the tables that `kafka-consumer-groups` of Kafka 4.x prints."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from pipelines.runtime.terminal_text import mask_of

#: States in which the tool warns.
_REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})

_LEAST_WIDTH = 15
_WIDTHS = {
    "PARTITION": 10,
    "GROUP-INSTANCE-ID": 17,
    "ASSIGNMENT-STRATEGY": 20,
    "STATE": 20,
    "START-OFFSET": 13,
    "CURRENT-ASSIGNMENT": 20,
    "TARGET-ASSIGNMENT": 20,
    "COORDINATOR (ID)": 25,
    "TARGET-ASSIGNMENT-EPOCH": 25,
}
#: Columns as wide as their longest value; the other ones are not aligned after a longer value.
_GROWING = frozenset(
    {
        "GROUP", "TOPIC", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "CURRENT-ASSIGNMENT", "TARGET-ASSIGNMENT",
        "COORDINATOR (ID)",
    }
)  # fmt: skip


def cell(value: object) -> str:
    """Text of a value; `-` for none."""
    return "-" if value is None else str(value)


def write_block(out: TextIO, rows: Sequence[Mapping[str, str]], columns: Sequence[str], *, end: str | None = None) -> None:
    """Write the head and the rows of a group, after an empty line. A terminal gets no control characters.

    The last column is not padded, unless there is an `end`, which then ends each line.
    """
    mask = mask_of(out)
    rows = [{name: mask(row[name]) for name in columns} for row in rows]
    widths = {name: _width(name, rows) for name in columns}
    for row in ({name: name for name in columns}, *rows):
        cells = [row[name].ljust(widths[name]) for name in columns]
        out.write("\n" + " ".join([*cells[:-1], row[columns[-1]] if end is None else cells[-1] + end]))
    out.write("\n")


def _width(name: str, rows: Iterable[Mapping[str, str]]) -> int:
    least = _WIDTHS.get(name, _LEAST_WIDTH)
    return max(least, *(len(row[name]) for row in rows), 0) if name in _GROWING else least


def write_remark(messages: TextIO, group: str, state: str, members: int) -> None:
    """Write the tool's remark about a group that rebalances or has no members."""
    group = mask_of(messages)(group)
    if state in _REBALANCING:
        messages.write(f"\nWarning: Consumer group '{group}' is rebalancing.\n")
    elif not members:
        messages.write(f"\nConsumer group '{group}' has no active members.\n")
