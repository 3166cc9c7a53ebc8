"""Messages of magic 0 and 1 as clients and brokers before Kafka 0.11 write them."""

import struct
import zlib
from collections.abc import Sequence

from coordinator_core.log.compression import Compression, compress
from coordinator_core.log.record_batch import LOG_APPEND_TIME, BatchRecord


def write_message_set(
    records: Sequence[BatchRecord],
    *,
    magic: int = 1,
    compression: Compression = Compression.NONE,
    log_append_time: int | None = None,
) -> bytes:
    """Write messages in sequence, or one wrapper around all when compressed. Magic 0 drops the timestamps.

    ZSTD exists only in record batches v2. With `log_append_time` (ms, magic 1) brokers set the timestamp of every uncompressed
    message, but of compressed messages only that of the wrapper.
    """
    stamp = 0 if log_append_time is None else LOG_APPEND_TIME
    if compression is Compression.NONE:
        return b"".join(
            _message(r.offset, magic, stamp, r.timestamp if log_append_time is None else log_append_time, r.key, r.value)
            for r in records
        )
    base = records[0].offset if magic == 1 else 0
    inner = b"".join(_message(r.offset - base, magic, 0, r.timestamp, r.key, r.value) for r in records)
    latest = max(record.timestamp for record in records)
    timestamp = latest if log_append_time is None else log_append_time
    return _message(records[-1].offset, magic, stamp | compression, timestamp, None, compress(compression, inner, magic=magic))


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"".join(
        (
            struct.pack(">bB", magic, attributes),
            struct.pack(">q", timestamp) if magic == 1 else b"",
            struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key,
            struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value,
        )
    )
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body
