"""A configuration file of another program, read into a tree. It is not trusted: size, depth and features are bounded."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.doctor.migration.hocon import parse_hocon
from pipelines.doctor.migration.properties import parse_properties
from pipelines.runtime.errors import UsageError

#: Largest file that is read, in bytes. Configurations of these programs have some kilobytes.
MAX_BYTES = 256 * 1024

_MAX_KEY_PARTS = 100
_KEY_PART = r"""(?:[\w\-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
#: A line that begins with a longer key, of a value or of a table. The parser of the standard library would take a time that
#: grows with the square of the number of parts: minutes for a file of the largest size.
_LONG_KEY = re.compile(rf"^[ \t]*(?:\[\[?[ \t]*)?(?:{_KEY_PART}[ \t]*\.[ \t]*){{{_MAX_KEY_PARTS}}}", re.MULTILINE | re.ASCII)

_Parser = Callable[[str], Any]


def peer_trees(path: str) -> Iterator[Mapping[Any, Any]]:
    """The tree of the file in each format that it may be written in: that of its suffix first.

    Raises:
        UsageError: the file is missing, too large, not UTF-8, or of an unknown format.
    """
    text = _text(path)
    formats = _BY_SUFFIX.get(Path(path).suffix.lower(), (_toml, _properties, parse_hocon, _yaml))
    reasons, found = [], False
    for parse in formats:
        try:
            tree = parse(text)
        except (ValueError, RecursionError) as error:
            reasons.append("it is nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0])
            continue
        if isinstance(tree, Mapping) and tree:
            found = True
            yield tree
    if not found:
        raise UsageError(f"cannot read {path}: {reasons[0] if reasons else 'it has no keys'}")


def _text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UsageError(f"cannot read {path}: more than {MAX_BYTES:,} bytes")
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error


def _toml(text: str) -> Any:
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {_MAX_KEY_PARTS} parts")
    return tomllib.loads(text)


def _properties(text: str) -> Any:
    return parse_properties(text)


def _yaml(text: str) -> Any:
    try:
        # of an extra, and only YAML needs it
        from pipelines.doctor.migration.yaml_tree import parse_yaml
    except ModuleNotFoundError as error:
        raise UsageError("YAML files need the package pyyaml: pip install 'grouplake[migrate]'") from error
    return parse_yaml(text)


_BY_SUFFIX: dict[str, tuple[_Parser, ...]] = {
    ".toml": (_toml,),
    ".yaml": (_yaml,),
    ".yml": (_yaml,),
    # kafka-lag-exporter names its HOCON file application.conf
    ".conf": (parse_hocon, _toml),
    ".hocon": (parse_hocon,),
    ".properties": (_properties,),
    ".env": (_properties,),
}
