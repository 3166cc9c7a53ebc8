"""Writes docs/images/overview-light.svg and overview-dark.svg, the diagram of README: one drawing, two palettes.

python docs/generate_diagram.py
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
_WIDTH, _HEIGHT = 960, 253
_SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
_MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_TITLE = (
    "The job reads __consumer_offsets from brokers, a log directory or a dump and keeps Delta tables that SQL, Spark "
    "and any Delta reader query. The coordinator writes such a log."
)


@dataclass(frozen=True)
class Palette:
    """Colours of one theme; the background stays transparent."""

    text: str
    muted: str
    line: str
    fill: str
    accent: str
    accent_fill: str


PALETTES = {
    "light": Palette("#1f2328", "#59636e", "#b7bfc8", "#f6f8fa", "#0550ae", "#ddf0ff"),
    "dark": Palette("#e6edf3", "#9198a1", "#4a525c", "#161b22", "#79c0ff", "#12263f"),
}


@dataclass(frozen=True)
class Box:
    """A rectangle with a title and a line below it; a `mono` line is text that a user types."""

    x: int
    y: int
    width: int
    height: int
    title: str
    line: str = ""
    mono: bool = False
    accent: bool = False


_BOXES = (
    Box(0, 30, 224, 58, "Kafka brokers", "kafka://host:9092", mono=True),
    Box(0, 104, 224, 58, "Log directory, copy or dump", "segments:DIR  jsonl:FILE", mono=True),
    Box(0, 194, 224, 58, "Grouplake coordinator", "serves clients, writes a log"),
    Box(276, 30, 212, 222, "Structured Streaming job", accent=True),
    Box(540, 30, 196, 222, "Delta tables", accent=True),
    Box(788, 30, 172, 58, "SQL", "grouplake sql", mono=True),
    Box(788, 104, 172, 58, "Spark", "reads the same tables"),
    Box(788, 194, 172, 58, "Any Delta reader", "DuckDB, Polars, Trino"),
)
#: From x, y to x, y.
_ARROWS = (
    (224, 59, 272, 59),
    (224, 133, 272, 133),
    (112, 194, 112, 166),
    (488, 141, 536, 141),
    (736, 59, 784, 59),
    (736, 133, 784, 133),
    (736, 223, 784, 223),
)
_STEPS = (
    "decode every record type",
    "keep the last record per key",
    "replay as the broker loads",
    "apply tombstones and expiry",
    "commit each batch once",
)
_TABLES = ("offsets", "pending_offsets", "groups", "members", "offset_history", "group_history", "quarantine", "batches")


def diagram(palette: Palette) -> str:
    """The drawing as SVG."""
    view = f'viewBox="-1 -1 {_WIDTH + 2} {_HEIGHT + 2}" width="{_WIDTH}" font-family="{_SANS}"'
    head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img" aria-labelledby="title">',
        f'<title id="title">{_TITLE}</title>',
        f'<defs>{head}<path d="M0 0 L8 4 L0 8 z" fill="{palette.muted}"/></marker></defs>',
        *_headings(palette),
        *(part for box in _BOXES for part in _box(box, palette)),
        *_arrows(palette),
        *_lists(palette),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _text(x: int, y: int, text: str, fill: str, size: float = 13, *, mono: bool = False, bold: bool = False) -> str:
    family = f' font-family="{_MONO}"' if mono else ""
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="{fill}" font-size="{size}"{family}{weight}>{escape(text)}</text>'


def _headings(palette: Palette) -> Iterator[str]:
    yield _text(0, 16, "__consumer_offsets", palette.muted, mono=True)
    for x, heading in ((276, "decode and replay"), (540, "state and history"), (788, "query")):
        yield _text(x, 16, heading, palette.muted)


def _box(box: Box, palette: Palette) -> Iterator[str]:
    colours = (palette.accent_fill, palette.accent) if box.accent else (palette.fill, palette.line)
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"'
    yield f'<rect {place} fill="{colours[0]}" stroke="{colours[1]}"/>'
    yield _text(box.x + 14, box.y + 25, box.title, palette.text, 14, bold=True)
    if box.line:
        yield _text(box.x + 14, box.y + 44, box.line, palette.muted, 12.5 if box.mono else 13, mono=box.mono)


def _arrows(palette: Palette) -> Iterator[str]:
    for x1, y1, x2, y2 in _ARROWS:
        yield f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{palette.muted}" stroke-width="1.5" marker-end="url(#head)"/>'


def _lists(palette: Palette) -> Iterator[str]:
    for number, step in enumerate(_STEPS, 1):
        y = 48 + number * 37
        yield _text(290, y, str(number), palette.accent, bold=True)
        yield _text(308, y, step, palette.text)
    for number, table in enumerate(_TABLES):
        yield _text(554, 81 + number * 22, table, palette.text, 12.5, mono=True)


if __name__ == "__main__":
    for name, palette in PALETTES.items():
        (IMAGES / f"overview-{name}.svg").write_text(diagram(palette), encoding="utf-8")
