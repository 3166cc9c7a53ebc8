"""The series of metrics in columns, before any format: `/metrics` and OTLP are made of the same ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.metrics.metric import Metric


@dataclass(frozen=True, eq=False)
class SeriesLabels:
    """Labels of series, in their order: one value that all series have, or a column. Metrics with the same rows share them."""

    columns: Mapping[str, str | pa.Array]
    count: int

    @cached_property
    def text(self) -> pa.Array:
        """The labels of each series as the text format has them, with braces; empty without labels."""
        if not self.columns:
            return pa.repeat("", self.count)
        parts: list[str | pa.Array] = []
        text = "{"
        for label, value in self.columns.items():
            text += f'{label}="'
            if isinstance(value, str):
                text += escaped(value)
            else:
                parts += [text, _escaped_column(value)]
                text = ""
            text += '",'
        parts.append(text[:-1] + "}")
        if len(parts) == 1:
            return pa.repeat(parts[0], self.count)
        return one_chunk(pc.binary_join_element_wise(*parts, ""))


@dataclass(frozen=True, eq=False)
class MetricSeries:
    """The series of one metric: their labels, and a column of numbers without nulls."""

    metric: Metric
    labels: SeriesLabels
    values: pa.Array

    @classmethod
    def of(cls, metric: Metric, labels: Mapping[str, str | Sequence[str]], values: Sequence[int]) -> "MetricSeries":
        """A few series: a label has one value or one per series."""
        columns = {name: value if isinstance(value, str) else pa.array(value, pa.string()) for name, value in labels.items()}
        return cls(metric, SeriesLabels(columns, len(values)), pa.array(values, pa.int64()))

    def __len__(self) -> int:
        return len(self.values)


def escaped(text: str) -> str:
    """A value of a label, as it is between the quotation marks."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_column(column: pa.Array) -> pa.Array:
    for character, replacement in (("\\", "\\\\"), ("\n", "\\n"), ('"', '\\"')):
        column = pc.replace_substring(column, character, replacement)
    return column


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
