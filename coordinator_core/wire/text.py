"""Text of messages, decoded as brokers do: `new String(bytes, UTF_8)` replaces what is not UTF-8 with U+FFFD.

Java and Python replace the same bytes by the same number of characters, except an encoded surrogate: Java takes its two or three
bytes as one malformed character, Python takes each byte as one.
"""

import re

#: The bytes of an encoded surrogate (U+D800–U+DFFF), also if the last one is missing.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
#: A byte that UTF-8 never has.
_INVALID = b"\xff"


def decode_text(data: bytes) -> str:
    """Decode the bytes of a string. No bytes are an error."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_INVALID, data).decode(errors="replace")
