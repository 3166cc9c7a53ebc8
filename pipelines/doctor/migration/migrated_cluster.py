"""What a file of another program amounts to: for each cluster a source address and a configuration of ours."""

import re
from dataclasses import dataclass, field

from pipelines.doctor.migration.peer_keys import PeerKeys

Value = str | int | float | bool | list[str]

#: Printed in place of an address that the file does not have in clear.
NO_SERVER = "BROKER:9092"

_PLACEHOLDER = re.compile(r"\$\{\??([A-Za-z_][A-Za-z0-9_]*)(?::-?[^{}]*)?\}")
_SERVER = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_HAS_PLACEHOLDER = re.compile(r"\$\{|\$[A-Z_]+|%%")
_RESOLVED = ("env:", "credential:")
_NOT_A_SERVER = f"has no address in the form HOST:PORT: write it in the place of {NO_SERVER}"
_SECRET = 'a secret, which is not copied: set the variable that the configuration names, or write "credential:NAME"'
_VARIABLE = "a variable of the other program: the configuration reads it from the environment"
_PARTLY_VARIABLE = "has a variable within a text: write the value out"
_LIKE_A_VARIABLE = 'begins with "env:" or "credential:", which has a meaning here: not copied'


@dataclass
class MigratedCluster:
    """A cluster of the file. `name` is that of the file, `polled` is true for a source of polls."""

    name: str
    servers: list[str] = field(default_factory=list)
    polled: bool = False
    topic: str = ""
    interval_seconds: int = 30
    sections: dict[str, dict[str, Value]] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The source address."""
        servers = ",".join(self.servers) or NO_SERVER
        if self.polled:
            return f"kafka-groups://{servers}"
        return f"kafka://{servers}{f'/{self.topic}' if self.topic else ''}"

    @property
    def file_name(self) -> str:
        """A file name for the configuration."""
        return (re.sub(r"[^A-Za-z0-9_-]+", "-", self.name).strip("-")[:60] or "grouplake").lower()

    def put(self, section: str, key: str, value: Value | None) -> None:
        """Set a key; None leaves it out."""
        if value is not None:
            self.sections.setdefault(section, {})[key] = value

    def put_text(self, section: str, key: str, keys: PeerKeys, name: str) -> None:
        """Copy the text of a key; a text that is a variable becomes a variable of ours."""
        self.put_copied(section, key, keys.text(name), keys, name)

    def put_copied(self, section: str, key: str, value: str | None, keys: PeerKeys, name: str) -> None:
        """The same for a text that was part of the key `name`."""
        if value is None:
            return
        match = _PLACEHOLDER.fullmatch(value)
        if match is not None:
            keys.remark(name, _VARIABLE)
            self.put(section, key, f"env:{match[1]}")
        elif _HAS_PLACEHOLDER.search(value):
            keys.remark(name, _PARTLY_VARIABLE)
        elif value.startswith(_RESOLVED):
            keys.remark(name, _LIKE_A_VARIABLE)
        else:
            self.put(section, key, value)

    def put_secret(self, key: str, variable: str, keys: PeerKeys, name: str) -> None:
        """Set a secret of [kafka] to a variable: that of the file if its value is one, otherwise `variable`."""
        value = keys.text(name)
        if value is not None:
            self.put_secret_text(key, variable, value)
            keys.remark(name, _SECRET)

    def put_secret_text(self, key: str, variable: str, value: str) -> None:
        """The same for a secret that was part of a text."""
        match = _PLACEHOLDER.fullmatch(value)
        self.put("kafka", key, f"env:{variable if match is None else match[1]}")

    def put_servers(self, keys: PeerKeys, name: str) -> None:
        """Take over the addresses of brokers."""
        servers = keys.texts(name)
        self.servers = [server for server in servers if _SERVER.fullmatch(server)]
        if not servers or len(self.servers) < len(servers):
            keys.remark(name, _NOT_A_SERVER)

    def put_interval(self, milliseconds: float | None) -> None:
        """Interval of batches and samples: that of the other program, at least a second."""
        if milliseconds is not None:
            self.interval_seconds = max(1, round(milliseconds / 1_000))
            self.put("lag", "interval_seconds", self.interval_seconds)
            if self.polled:
                self.put("job", "poll_seconds", self.interval_seconds)

    def put_port(self, keys: PeerKeys, name: str) -> None:
        """Listen on the port of the other program, on this machine alone; the key may be a port or HOST:PORT."""
        value = keys.text(name)
        if value is None:
            return
        port = value.rpartition(":")[2]
        if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
            keys.remark(name, "has no port: dashboard.listen keeps its default, 127.0.0.1:8080")
            return
        self.put("dashboard", "listen", f"127.0.0.1:{int(port)}")
        keys.remark(
            name, "the port is kept, on this machine alone: another address needs TLS and users (docs/dashboard.md#security)"
        )


@dataclass
class Migration:
    """The clusters of a file, and its keys as they were translated."""

    peer: str
    version: str
    clusters: list[MigratedCluster]
    keys: PeerKeys
    #: What a reader should know besides keys, one sentence each.
    notes: list[str] = field(default_factory=list)
