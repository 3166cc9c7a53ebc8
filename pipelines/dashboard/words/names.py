"""Names that clients chose: hostile text until shown. Jinja escapes markup; this shows characters that are invisible."""

import unicodedata
from urllib.parse import quote

#: Longest name that is shown in full.
SHOWN = 120

#: Control characters, format characters such as those of bidirectional text, surrogates, private use, not assigned.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def visible(name: object, length: int = SHOWN) -> str:
    r"""The name with invisible characters as `\u202e`, cut in the middle if it is long. The JSON of a page has it in full."""
    text = str(name)
    if len(text) > length:
        text = f"{text[: length - 20]} … {text[-10:]} ({len(text):,} characters)"
    return "".join(_escaped(character) if unicodedata.category(character) in _INVISIBLE else character for character in text)


def segment(name: str) -> str:
    """The name as one segment of a path, a slash and dots included."""
    encoded = quote(name, safe="", errors="surrogatepass")
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
