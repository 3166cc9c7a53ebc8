"""Whether a folder of tables was made from a log or from polls: their positions have nothing in common."""

from deltalake.exceptions import DeltaError

from pipelines.runtime.errors import TablesError, UsageError
from pipelines.source.address import SourceAddress
from pipelines.tables.object_stores import reason_of
from pipelines.tables.store import Batch, TableStore

#: Property of `batches`; folders of earlier versions have none, and were made from a log.
PROPERTY = "grouplake.source"
_LOG, _POLLS = "log", "polls"
_WORDS = {_LOG: "a log", _POLLS: "polls (kafka-groups://)"}


def expect_same_source(store: TableStore, last: Batch | None, address: SourceAddress) -> None:
    """Check that tables with a batch were made from a source of the same kind.

    Raises:
        UsageError: the tables were made from a log, and the source is polled, or the other way round.
    """
    kind, stored = _kind(address), _stored(store) if last is not None else None
    if stored is not None and stored != kind:
        raise UsageError(
            f"the tables under {store.root} were made from {_WORDS.get(stored, repr(stored))}, and {address} is read as "
            f"{_WORDS[kind]}: use another folder, since rows of the one have no position in the other"
        )


def remember_source(store: TableStore, address: SourceAddress) -> None:
    """Store the kind of the source that the tables are made from.

    Raises:
        TablesError: the table `batches` cannot be written.
    """
    kind = _kind(address)
    if _stored(store) != kind:
        try:
            store.table("batches").alter.set_table_properties({PROPERTY: kind}, raise_if_not_exists=False)
        except DeltaError as error:
            raise TablesError(f"cannot store the kind of the source in {store.path('batches')}: {reason_of(error)}") from error


def _kind(address: SourceAddress) -> str:
    return _POLLS if address.is_polled else _LOG


def _stored(store: TableStore) -> str:
    return store.table("batches").metadata().configuration.get(PROPERTY, _LOG)
