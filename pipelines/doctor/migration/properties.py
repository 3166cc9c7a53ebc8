"""Java's properties files, and files of environment variables: NAME=VALUE a line."""

import re

_NAME = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*[=:]\s*(.*)")


class PropertiesError(ValueError):
    """A line that is not NAME=VALUE."""


def parse_properties(text: str) -> dict[str, str]:
    """The values by name. A line that ends with a backslash continues in the next one; quotes around a value are removed.

    Raises:
        PropertiesError: another line, or none.
    """
    found = {}
    for number, line in enumerate(re.sub(r"\\\r?\n[ \t]*", "", text).splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        match = _NAME.fullmatch(line)
        if match is None:
            raise PropertiesError(f"line {number} is not NAME=VALUE")
        value = match[2]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[match[1]] = value
    if not found:
        raise PropertiesError("no line with NAME=VALUE")
    return found
