"""Names of clusters, groups, topics, clients and hosts as segments of URL paths.

Kafka accepts any string as a group id, a client id or a transactional id: also the empty one, `.`, `..`, and names with slashes.
Percent-encoding does not carry them: browsers resolve `%2E%2E` as `..`, proxies decode `%2F` and merge slashes. So a name is

- itself, if it has only unreserved characters (RFC 3986), no `~` at its start, and cannot be taken for a dot segment or a file;
- otherwise `~` and its UTF-8 bytes, in which all but letters, digits, `-` and `_` are `~` and two hexadecimal digits:
  `a/b` is `~a~2Fb`. The empty name is `~empty`.

Any other segment is a name as it is. Earlier versions encoded names with percent signs only, and their links still lead to the
same pages, apart from those to a name that is itself the code of another name.
"""

import re
from urllib.parse import unquote, unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor

#: Ends of the paths that programs read: the JSON and the CSV of a page.
FILES = (".json", ".csv")
#: Path of the Model Context Protocol.
MCP_PATH = "/mcp"

_MARK = "~"
_EMPTY = "~empty"
_PLAIN = re.compile(r"(?!~)[A-Za-z0-9._~-]+")
#: Bytes that a code has as hexadecimal digits. The dot is one of them: a code is no dot segment and does not end like a file.
_CODED = re.compile(r"[^A-Za-z0-9_-]")


def encode_name(name: str) -> str:
    """A name as one segment of a path: unreserved characters only, never a dot segment, and not the end of a file's name."""
    if _PLAIN.fullmatch(name) and name not in (".", "..") and not name.endswith(FILES):
        return name
    if not name:
        return _EMPTY
    octets = name.encode("utf-8", "surrogatepass").decode("latin-1")
    return _MARK + _CODED.sub(lambda found: f"~{ord(found[0]):02X}", octets)


def decode_name(segment: str) -> str:
    """The name of which `encode_name` makes `segment`. A segment that it makes of no name is a name as it is."""
    if not segment.startswith(_MARK):
        return segment
    try:
        octets = unquote_to_bytes(segment.removeprefix(_MARK).replace("~", "%"))
        name = "" if segment == _EMPTY else octets.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return segment
    return name if encode_name(name) == segment else segment


class NameConvertor(Convertor[str]):
    """`{group:name}` in the path of a route: handlers get the name, and `url_path_for` encodes it."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The name of a segment, which clients and proxies may have percent-encoded."""
        return decode_name(unquote(value))

    def to_string(self, value: str) -> str:
        """The segment of a name."""
        return encode_name(value)


class EmptyNameConvertor(NameConvertor):
    """`{group:name_or_empty}`: an empty segment is the empty name, as in Burrow's paths."""

    regex = "[^/]*"


register_url_convertor("name", NameConvertor())
register_url_convertor("name_or_empty", EmptyNameConvertor())
