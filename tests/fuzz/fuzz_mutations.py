"""Mutations of bytes that may break a parser: numbers at their extremes, cuts, splices; batches with corrected checksums."""

import struct
import zlib
from collections.abc import Sequence
from random import Random

import crc32c

from coordinator_core.log.compression import COMPRESSIONS, BadPayload, Compression, compress, decompress
from coordinator_core.log.record_batch import COMPRESSION_MASK, CRC_START, HEADER_SIZE, LOG_OVERHEAD

_WIDTHS = ((1, "b"), (2, ">h"), (4, ">i"), (8, ">q"))

#: Signed numbers at which a length, a count, an offset or a version changes its meaning, by width.
EXTREMES = tuple(
    tuple(struct.pack(form, number) for number in (-(1 << bits - 1), -2, -1, 0, 1, 2, 7, (1 << bits - 1) - 1, 1 << bits - 2))
    for bits, form in ((8 * width, form) for width, form in _WIDTHS)
)

#: Varints at which a length or a count changes its meaning; over-long and unfinished ones too.
VARINTS = (
    b"\x00", b"\x01", b"\x02", b"\x7f", b"\x80\x01", b"\xff\xff\x03", b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x08", b"\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
)  # fmt: skip

#: Position and width (as an index of `EXTREMES`) of the fields of a v2 header.
_HEADER_FIELDS = (
    (0, 3), (8, 2), (12, 2), (16, 0), (17, 2), (21, 1), (23, 2), (27, 3), (35, 3), (43, 3), (51, 1), (53, 2), (57, 2),
)  # fmt: skip
#: The same for a message of magic 0 or 1; the fields after these differ.
_MESSAGE_FIELDS = ((0, 3), (8, 2), (12, 2), (16, 0), (17, 0), (18, 3), (18, 2), (22, 2), (26, 2), (30, 2))


def mutated(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """One to four changes anywhere in `data`; splices take their other half from `others`."""
    changed = bytearray(data)
    for _ in range(1 + int(4 * rng.random() ** 2)):
        _CHANGES[int(rng.random() * len(_CHANGES))](rng, changed, others)
    return bytes(changed)


def _position(rng: Random, data: bytearray) -> int:
    return int(rng.random() * len(data))


def _set_number(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    number = rng.choice(EXTREMES[int(rng.random() * 4)])
    at = _position(rng, data)
    data[at : at + len(number)] = number


def _set_varint(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    at = _position(rng, data)
    data[at : at + 1] = rng.choice(VARINTS)


def _set_byte(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    if data:
        data[_position(rng, data)] = int(rng.random() * 256)


def _flip(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    if data:
        data[_position(rng, data)] ^= 1 << int(rng.random() * 8)


def _add(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    """Add a small number to a length."""
    if data:
        at = _position(rng, data)
        data[at] = (data[at] + rng.choice((-2, -1, 1, 2))) & 0xFF


def _cut(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    del data[_position(rng, data) :]


def _remove(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    at = _position(rng, data)
    del data[at : at + 1 + int(rng.random() * 8)]


def _insert(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    at = _position(rng, data)
    data[at:at] = rng.randbytes(1 + int(rng.random() * 8))


def _repeat(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    at = _position(rng, data)
    data[at:at] = data[at : at + 1 + int(rng.random() * 32)]


def _splice(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    data[_position(rng, data) :] = other[int(rng.random() * len(other)) :]


_CHANGES = (_set_number, _set_number, _set_varint, _set_varint, _set_byte, _flip, _add, _cut, _remove, _insert, _repeat, _splice)


def mutated_frame(rng: Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """A batch or message with changes to its header or its contents; most of them with a correct checksum and length.

    Contents of compressed batches are changed before compression, so that the parser of records sees the change.
    """
    changed = bytearray(frame)
    is_batch = len(frame) >= HEADER_SIZE and frame[16] == 2
    kind = rng.random()
    if is_batch and kind < 0.45:
        changed[HEADER_SIZE:] = _mutated_payload(rng, frame, others)
    elif kind < 0.85:
        for _ in range(1 + int(3 * rng.random() ** 2)):
            at, width = rng.choice(_HEADER_FIELDS if is_batch else _MESSAGE_FIELDS)
            number = rng.choice(EXTREMES[width]) if rng.random() < 0.8 else rng.randbytes(1 << width)
            changed[at : at + len(number)] = number
    else:
        changed = bytearray(mutated(rng, frame, others))
    if len(changed) != len(frame) and len(changed) >= LOG_OVERHEAD and rng.random() < 0.8:
        struct.pack_into(">i", changed, 8, len(changed) - LOG_OVERHEAD)
    if len(changed) > CRC_START and rng.random() < 0.85:
        with_checksum(changed)
    return bytes(changed)


def with_checksum(frame: bytearray) -> None:
    """Correct the checksum of a frame for its bytes and the format that it claims."""
    if frame[16] == 2:
        struct.pack_into(">I", frame, 17, crc32c.crc32c(bytes(frame[CRC_START:])))
    else:
        struct.pack_into(">I", frame, 12, zlib.crc32(frame[16:]))


def _mutated_payload(rng: Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    payload = frame[HEADER_SIZE:]
    codec = COMPRESSIONS.get(frame[22] & COMPRESSION_MASK)
    if codec in (None, Compression.NONE) or rng.random() < 0.3:
        return mutated(rng, payload, others)
    plain = decompress(codec, payload, limit=1 << 20)
    return payload if isinstance(plain, BadPayload) else compress(codec, mutated(rng, bytes(plain), others))
