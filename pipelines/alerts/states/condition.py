"""Conditions of rules on columns of values. The result is true, false or null: an unknown value makes no condition true."""

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc


class Aggregate(Enum):
    """Function that makes one value from those of several partitions."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True)
class Above:
    """The value is greater than the limit."""

    limit: float

    def holds(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Per value: true, false, or null for an unknown one."""
        return pc.greater(_known(values), self.limit)


@dataclass(frozen=True)
class Below:
    """The value is less than the limit."""

    limit: float

    def holds(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Per value: true, false, or null for an unknown one."""
        return pc.less(_known(values), self.limit)


@dataclass(frozen=True)
class OneOf:
    """The text is one of these; a text of `unknown` that is not among them counts as unknown."""

    texts: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def holds(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Per value: true, false, or null for an unknown one."""
        found = pc.is_in(values, pa.array(self.texts, pa.string()))
        others = pa.array(sorted(set(self.unknown) - set(self.texts)), pa.string())
        is_known = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, others)))
        return pc.if_else(is_known, found, pa.scalar(None, pa.bool_()))


Condition = Above | Below | OneOf


def holds_of_aggregate(
    condition: Condition, aggregate: Aggregate, values: pa.ChunkedArray, unknown: pa.ChunkedArray
) -> pa.ChunkedArray:
    """The condition on aggregates of the known values, where `unknown` further values are missing.

    A sum or maximum (of values ≥ 0) can only grow with the missing values, and a minimum can only fall. So "above 100" is true
    for a known sum of 101, and unknown for one of 99.
    """
    certain = condition.holds(values)
    grows = aggregate is not Aggregate.MIN
    stays_true = grows if isinstance(condition, Above) else not grows
    missing = pc.if_else(pc.greater(unknown, 0), pa.scalar(None, pa.bool_()), pa.scalar(not stays_true))
    return pc.or_kleene(certain, missing) if stays_true else pc.and_kleene(certain, missing)


def _known(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """NaN is unknown."""
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values) if pa.types.is_floating(values.type) else values
