"""Addresses on which servers listen: loopback, or those that other machines reach."""

import ipaddress

from coordinator_core.service.net.addresses import ListenAddress, parse_listen_address
from pipelines.runtime.errors import UsageError


def listen_address(text: str, given_by: str) -> ListenAddress:
    """The address in a text; `given_by` is its option or setting. Raises UsageError for an invalid one."""
    try:
        return parse_listen_address(text)
    except ValueError as error:
        raise UsageError(f"{given_by}: {error}") from error


def expect_loopback(endpoint: ListenAddress, setting: str) -> None:
    """Raise UsageError for an address that other machines reach; `setting` is that which allows it."""
    if not is_loopback(endpoint.host):
        raise UsageError(
            f"{endpoint} is not a loopback address, and the server has no authentication: use 127.0.0.1, or set "
            f"{setting} = true where only trusted clients reach the address"
        )


def is_loopback(host: str) -> bool:
    """True for addresses of this machine that no other machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
