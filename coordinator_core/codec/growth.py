"""Arrays that grow."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def grown(array: NDArray[T], size: int) -> NDArray[T]:
    """A copy of the array with room for `size` items, zero behind the old ones."""
    larger: NDArray[T] = np.zeros(size, dtype=array.dtype)
    larger[: array.size] = array
    return larger
