"""A migration as text, or one JSON object per cluster."""

import json
import shlex
import textwrap
from collections.abc import Iterator
from typing import Any, TextIO

from pipelines.doctor.migration.migrated_cluster import MigratedCluster, Migration, Value
from pipelines.doctor.migration.peer_keys import by_reason
from pipelines.runtime.terminal_text import masked

_WIDTH = 100
_POLLED = (
    "kafka-groups:// needs the rights of the other program. With Read on __consumer_offsets, kafka:// in its place keeps every "
    "commit and rebalance; then leave out [groups] and poll_seconds (docs/sources.md)."
)
#: Longest key that is printed: names in the file are not trusted.
_MAX_KEY = 100


def write_migration(migration: Migration, out: TextIO) -> None:
    """Write a configuration per cluster, with its commands and the keys without counterpart as comments."""
    out.write(f"# {migration.peer} as Grouplake; keys as in its version {migration.version}\n")
    for number, cluster in enumerate(migration.clusters, 1):
        if len(migration.clusters) > 1:
            out.write(f"\n# ---- cluster {number} of {len(migration.clusters)}: {_comment(cluster.name)}\n")
        out.write(f"# save as {cluster.file_name}.toml, then one of\n")
        for command in commands(cluster):
            out.write(f"#   {command}\n")
        if cluster.polled:
            for line in _wrapped(_POLLED):
                out.write(f"# {line}\n")
        out.write(configuration(cluster))
    reasons = by_reason(migration.keys.remarks)
    if reasons:
        out.write("\n# not, or not literally, taken over\n")
    for reason, keys in reasons.items():
        for line in _wrapped(f"{', '.join(map(_comment, keys))}: {reason}"):
            out.write(f"# {line}\n")


def migration_objects(migration: Migration) -> Iterator[dict[str, Any]]:
    """The same as an object per cluster; remarks are those of the file."""
    for cluster in migration.clusters:
        yield {
            "program": migration.peer,
            "version": migration.version,
            "cluster": cluster.name,
            "source": cluster.source,
            "configuration": configuration(cluster),
            "commands": commands(cluster),
            "remarks": [{"keys": keys, "reason": reason} for reason, keys in by_reason(migration.keys.remarks).items()],
        }


def write_migration_json(migration: Migration, out: TextIO) -> None:
    """Write one JSON object a line."""
    for row in migration_objects(migration):
        out.write(json.dumps(row) + "\n")


def configuration(cluster: MigratedCluster) -> str:
    """The configuration as TOML, without comments."""
    lines = []
    for section, values in cluster.sections.items():
        lines += ["", f"[{section}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    return "".join(f"{line}\n" for line in lines)


def commands(cluster: MigratedCluster) -> list[str]:
    """The lines that start a job with page and metrics: for a first look, and for a service."""
    source, name = shlex.quote(cluster.source), cluster.file_name
    service = f"--trigger {cluster.interval_seconds}s --maintain-every 1h --dashboard"
    return [
        f"grouplake start --source {source} --conf {name}.toml",
        f"grouplake run --source {source} --conf {name}.toml --tables /data/{name} {service}",
    ]


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return _toml_text(value) if isinstance(value, str) else str(value)


def _toml_text(text: str) -> str:
    """A basic string: characters that do not print are escaped, and half surrogate pairs, which TOML cannot have, replaced."""
    return '"' + "".join(map(_toml_char, text)) + '"'


def _toml_char(char: str) -> str:
    code = ord(char)
    if 0xD800 <= code < 0xE000:
        return "\\uFFFD"
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _comment(text: str) -> str:
    return masked(text if len(text) <= _MAX_KEY else f"{text[:_MAX_KEY]}…").encode(errors="replace").decode()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH - 2, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
