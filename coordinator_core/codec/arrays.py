"""Types of the arrays that hold columns, and their growth."""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
Structs = NDArray[Any]
Numbers = NDArray[Any]
#: An integer inside compiled code; numba infers its width.
Integer = Any

# The stubs are generic in the element type, the classes at run time are not.
if TYPE_CHECKING:
    ArrowArray = pa.Array[Any]
    ArrowColumn = pa.ChunkedArray[Any]
else:
    ArrowArray = pa.Array
    ArrowColumn = pa.ChunkedArray

T = TypeVar("T", bound=np.generic)


def grown(array: NDArray[T], size: int) -> NDArray[T]:
    """Return a copy of the array with `size` items; the new ones are zero."""
    larger: NDArray[T] = np.zeros(size, dtype=array.dtype)
    larger[: array.size] = array
    return larger
