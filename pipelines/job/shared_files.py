"""Files and folders of a run that its tasks open, so that every executor of a cluster needs them at the same path."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pipelines.source.address import SourceAddress
from pipelines.tables.location import local_folder

#: Connection options whose values are files.
_FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_oauth_token_file")

#: A table that the executors write in bulk batches.
_WRITTEN = "offsets"


def shared_files(address: SourceAddress, kafka: Mapping[str, str], tables: str) -> dict[str, bool]:
    """Absolute paths, and whether the executors write to them."""
    paths = [] if address.is_cluster else [Path(address.location)]
    paths += [Path(kafka[name]) for name in _FILES if kafka.get(name)]
    folder = local_folder(tables)
    written = {} if folder is None else {str((folder / _WRITTEN).absolute()): True}
    return {**{str(path.absolute()): False for path in paths}, **written}


def absolute_address(address: SourceAddress) -> SourceAddress:
    """The address with an absolute path: executors have another working directory than the driver."""
    return address if address.is_cluster else replace(address, location=str(Path(address.location).absolute()))
