"""Files and folders of a run that its tasks open, so that every executor of a cluster needs them at the same path."""

from dataclasses import replace
from pathlib import Path

from pipelines.job.run_options import RunOptions
from pipelines.source.address import SourceAddress
from pipelines.tables.location import local_folder

#: Connection options whose values are files.
_FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_oauth_token_file")

#: A table that the executors write in bulk batches.
_WRITTEN = "offsets"


def shared_files(options: RunOptions) -> dict[str, bool]:
    """Absolute paths, and whether the executors write to them."""
    paths = [] if options.address.topic else [Path(options.address.location)]
    paths += [Path(options.kafka[name]) for name in _FILES if options.kafka.get(name)]
    tables = local_folder(options.tables)
    written = {} if tables is None else {str((tables / _WRITTEN).absolute()): True}
    return {**{str(path.absolute()): False for path in paths}, **written}


def absolute_address(address: SourceAddress) -> SourceAddress:
    """The address with an absolute path: executors have another working directory than the driver."""
    return address if address.topic else replace(address, location=str(Path(address.location).absolute()))
