"""Names that clients chose, such as client ids, as text for people: hostile until shown."""

import unicodedata

#: A name that is not known.
UNKNOWN = "–"

#: The empty name, which Kafka accepts for groups and clients.
EMPTY = "(empty)"

#: Longest name that is shown in full.
SHOWN = 120

#: Control characters, format characters such as those of bidirectional text, surrogates, private use, not assigned.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def visible(name: object, length: int = SHOWN) -> str:
    r"""The name with invisible characters as `\u202e`, cut in the middle if it is long; an en dash if it is unknown.

    The empty name and a name of spaces have visible text too, so that links on them can be clicked. The JSON of a page has every
    name in full.
    """
    if name is None:
        return UNKNOWN
    text = str(name)
    if not text:
        return EMPTY
    if len(text) > length:
        text = f"{text[: length - 20]} … {text[-10:]} ({len(text):,} characters)"
    if text.isspace():
        return "".join(map(_escaped, text))
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) if unicodedata.category(character) in _INVISIBLE else character for character in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
