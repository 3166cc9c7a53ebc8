"""Probe of the conditional writes on which exclusive commits rely in an object store.

A commit creates the log file of the next version under the condition that it does not exist. A store that ignores the condition
lets two writers replace each other's commits without an error, so it is refused before the first write.
"""

from uuid import uuid4

from pipelines.runtime.errors import TablesError, UsageError
from pipelines.tables.location import local_folder
from pipelines.tables.object_stores import ObjectExists, Objects

#: Code of S3 for a header that a store does not know.
_NOT_IMPLEMENTED = "NotImplemented"


def expect_conditional_writes(root: str) -> None:
    """Write the same key twice under `root`, an object store, with the condition that it does not exist.

    Raises:
        UsageError: the store is not writable, or its second answer was a success.
    """
    if local_folder(root) is not None:
        return
    objects, key = Objects(root), f"_probe-{uuid4()}"
    try:
        objects.create(key, b"first")
    except ObjectExists:
        # a repeated request, whose first answer was lost: the store checks the condition
        return
    except TablesError as error:
        if _NOT_IMPLEMENTED in str(error):
            raise UsageError(_refused(root, str(error))) from error
        raise UsageError(f"cannot write under {root}: {error}") from error
    try:
        objects.create(key, b"second")
    except ObjectExists:
        return
    except TablesError as error:
        raise UsageError(_refused(root, str(error))) from error
    finally:
        _remove(objects, key)
    raise UsageError(_refused(root, "it replaced an object that existed"))


def _remove(objects: Objects, key: str) -> None:
    try:
        objects.delete([key])
    except TablesError:
        # without the right to delete, `maintain` fails with this reason
        return


def _refused(root: str, reason: str) -> str:
    return (
        f"the store of {root} does not support conditional writes (PUT with If-None-Match): {reason}. Two writers could replace "
        "each other's commits; use a store that has them, or a local folder"
    )
