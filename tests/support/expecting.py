"""Values of which a test knows the type, where the code under test may return others."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def expect(kind: type[T], value: object) -> T:
    """`value`, which fails the test unless it is a `kind`."""
    assert isinstance(value, kind), f"expected {kind.__name__}, found {value!r}"
    return value


def expect_all(kind: type[T], values: Iterable[object]) -> list[T]:
    """The same for each of `values`."""
    return [expect(kind, value) for value in values]
