"""Addresses in the form of the configuration, and in the form that Kafka stores in members."""

import ipaddress
import re
from typing import NamedTuple

_HIGHEST_PORT = 65_535
_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^:\[\]\s]+)):(?P<port>[0-9]{1,5})")


class ListenAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """Parse HOST:PORT, with an IPv6 host in brackets. Raises ValueError for anything else."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise ValueError(f"invalid address {text!r}: use HOST:PORT, such as 127.0.0.1:9092 or [::1]:9092")
    return ListenAddress(match["six"] or match["host"], int(match["port"]))


def java_host(host: str) -> str:
    """`InetAddress.toString` of an address without a name: a slash, and IPv6 in eight groups without leading zeros."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return f"/{host}"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return f"/{address.ipv4_mapped}"
        return "/" + ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
    return f"/{address}"
