"""Type checks for values whose type a test knows and the code under test leaves open."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def expect(kind: type[T], value: object) -> T:
    """Return `value`; fail the test unless it is a `kind`."""
    assert isinstance(value, kind), f"expected {kind.__name__}, found {value!r}"
    return value


def expect_all(kind: type[T], values: Iterable[object]) -> list[T]:
    """Return `values`; fail the test unless each is a `kind`."""
    return [expect(kind, value) for value in values]
