"""Durations of batches as horizontal bars, stacked by kind of phase. One scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.dashboard.charts.area import round_top

WIDTH = 1160
_LEFT, _RIGHT = 200, WIDTH - 90
_ROW, _TOP = 18.0, 4.0
_LEAST = 0.5

#: Kinds of phases: name, label, and the phases; writes take all other phases.
KINDS: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("read", "read", ("read", "metadata", "sample")),
    ("plan", "plan", ("plan",)),
    ("write", "write tables", ()),
    ("maintain", "maintain", ("age", "thin", "compact", "tidy")),
)
_WRITE = 2
_COMPACT = "compact"
_MAINTENANCE = frozenset(KINDS[-1][2])


@dataclass(frozen=True)
class PhaseBar:
    kind: str
    x: float
    width: float


@dataclass(frozen=True)
class BatchBars:
    """The bars of one batch."""

    batch_id: int
    y: float
    bars: tuple[PhaseBar, ...]
    end: float
    total_ms: int


@dataclass(frozen=True)
class PhaseChart:
    """Rows in a coordinate system of `width` × `height`; `top_ms` is the duration at the right edge."""

    width: int
    height: float
    left: float
    right: float
    row_height: float
    top_ms: float
    rows: tuple[BatchBars, ...]


def kind_ms(phase_ms: Mapping[str, int]) -> dict[str, int]:
    """Kind → milliseconds, in the order of KINDS."""
    found = {name: 0 for name, _, _ in KINDS}
    by_phase = {phase: name for name, _, phases in KINDS for phase in phases}
    if not is_maintenance(phase_ms):
        # batches and samples compact the small files that they wrote
        del by_phase[_COMPACT]
    for phase, ms in phase_ms.items():
        found[by_phase.get(phase, KINDS[_WRITE][0])] += ms
    return found


def is_maintenance(phase_ms: Mapping[str, int]) -> bool:
    """True for a batch of `grouplake maintain`, or a part of one by the job: it has no other phases."""
    return _COMPACT in phase_ms and phase_ms.keys() <= _MAINTENANCE


def phase_chart(batches: Sequence[Mapping[str, Any]]) -> PhaseChart:
    """A row per batch, in the given order."""
    sums = [kind_ms(batch["phase_ms"]) for batch in batches]
    top = round_top(sum(kinds.values()) for kinds in sums)
    rows = []
    for number, (batch, kinds) in enumerate(zip(batches, sums, strict=True)):
        bars, x = [], float(_LEFT)
        for name, ms in kinds.items():
            width = ms / top * (_RIGHT - _LEFT)
            if width >= _LEAST:
                bars.append(PhaseBar(name, round(x, 1), round(width, 1)))
            x += width
        rows.append(BatchBars(batch["batch_id"], _TOP + number * _ROW, tuple(bars), round(x, 1), sum(kinds.values())))
    return PhaseChart(WIDTH, _TOP + len(rows) * _ROW + 4, _LEFT, _RIGHT, _ROW, top, tuple(rows))
