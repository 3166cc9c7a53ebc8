"""Addresses of servers without authentication: those of other machines need a setting."""

import ipaddress

from coordinator_core.service.addresses import Endpoint, parse_listen_address
from pipelines.errors import UsageError


def listen_address(text: str, given_by: str, allow_remote: bool, setting: str) -> Endpoint:
    """The address of a server. `given_by` is its option or setting, `setting` that which allows addresses of other machines.

    Raises:
        UsageError: an invalid address, or one that other machines reach although that is not allowed.
    """
    try:
        endpoint = parse_listen_address(text)
    except ValueError as error:
        raise UsageError(f"{given_by}: {error}") from error
    if not allow_remote and not is_loopback(endpoint.host):
        raise UsageError(
            f"{endpoint} is not a loopback address, and the server has no authentication: use 127.0.0.1, or set "
            f"{setting} = true where only trusted clients reach the address"
        )
    return endpoint


def is_loopback(host: str) -> bool:
    """True for addresses of this machine that no other machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
