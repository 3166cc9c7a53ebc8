"""Keys of tombstones that some releases of Redpanda wrapped: their length (int32, little-endian), then the key.

`maybe_unwrap_from_iobuf` (`src/v/kafka/server/group_metadata.cc`) unwraps a key if this length is that of the remaining bytes.
Here the bytes inside must also begin with a type that Redpanda writes. That excludes every key that Kafka's brokers write: with
such a length its group is empty, and a type 0–2 in place of the next string's length would make the key shorter.
"""

from struct import Struct

#: Length of the wrapper, and the least number of bytes that can be a wrapped key: a type inside.
WRAPPER = 4
SHORTEST = WRAPPER + 2
#: Types of the keys that Redpanda writes: offset commits (0 and 1) and classic groups.
HIGHEST_TYPE = 2

_LENGTH_AND_TYPE = Struct("<i").unpack_from, Struct(">h").unpack_from


def unwrapped_key(key: bytes) -> bytes:
    """Return the key inside of a wrapped one; any other key as it is."""
    if len(key) < SHORTEST or key[3]:
        return key
    length_of, type_of = _LENGTH_AND_TYPE
    is_wrapped = length_of(key)[0] == len(key) - WRAPPER and 0 <= type_of(key, WRAPPER)[0] <= HIGHEST_TYPE
    return key[WRAPPER:] if is_wrapped else key
