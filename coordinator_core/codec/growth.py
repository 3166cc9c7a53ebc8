"""Growth of arrays."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def grown(array: NDArray[T], size: int) -> NDArray[T]:
    """Return a copy of the array with `size` items; the new ones are zero."""
    larger: NDArray[T] = np.zeros(size, dtype=array.dtype)
    larger[: array.size] = array
    return larger
