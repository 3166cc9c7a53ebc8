"""Records as JSON, as the console consumer's formatters of Kafka 4.x print them (KAFKA-16666).

The formatters print types 0, 1 and 2 (4.x also some share records); here every type has their form.
"""

from typing import Any

from coordinator_core.codec.records import Record
from coordinator_core.codec.schema import catalog
from coordinator_core.codec.text.json_converter import converter
from coordinator_core.codec.transactions import TRANSACTION_RECORD, TransactionRecord

JsonObject = dict[str, Any]


def json_form(record: Record) -> JsonObject:
    """Return the object of Kafka 4.x's console formatters: type and version are numbers, the value of a tombstone is null."""
    return {
        "key": {"type": record.record_type, "data": _key_data(record)},
        "value": None if record.value is None else {"version": record.value_version, "data": _value_data(record)},
    }


def transaction_json_form(record: TransactionRecord) -> JsonObject:
    """Return the object of Kafka 4.x's `TransactionLogMessageFormatter`."""
    value = None
    if record.value is not None and record.value_version is not None:
        data = converter("TransactionLogValue", record.value_version)(record.value)
        value = {"version": record.value_version, "data": data}
    return {"key": {"type": TRANSACTION_RECORD, "data": converter("TransactionLogKey", 0)(record.key)}, "value": value}


def _key_data(record: Record) -> JsonObject:
    data: JsonObject = converter(catalog().record_types[record.record_type].key.name, 0)(record.key)
    return data


def _value_data(record: Record) -> JsonObject:
    assert record.value_version is not None
    data: JsonObject = converter(catalog().record_types[record.record_type].value.name, record.value_version)(record.value)
    return data
