"""Settings of access, checked before the server starts."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.dashboard.security.certificate import CertificateFiles, read_secret
from pipelines.dashboard.security.credentials import read_credentials
from pipelines.dashboard.security.roles import Roles
from pipelines.runtime.errors import UsageError
from pipelines.runtime.listen_address import is_loopback


@dataclass(frozen=True)
class OidcSettings:
    """The client of an OpenID provider. `roles` maps values of the claim to roles, in order."""

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    scopes: tuple[str, ...]
    name_claim: str
    role_claim: str
    roles: Mapping[str, str]
    public_url: str
    session_seconds: int


@dataclass(frozen=True)
class SecuritySettings:
    """Access to the server."""

    roles: Roles
    tls: CertificateFiles | None = None
    trusted_proxies: tuple[str, ...] = ()
    credentials_file: str | None = None
    oidc: OidcSettings | None = None

    @property
    def has_authentication(self) -> bool:
        """True if clients have to authenticate."""
        return self.credentials_file is not None or self.oidc is not None


def security_settings(section: Mapping[str, Any], listen: ListenAddress) -> SecuritySettings:
    """Settings from the section `[dashboard]`.

    Raises:
        UsageError: an invalid value, a file that cannot be read, or an address that other machines reach without authentication
            or without encryption.
    """
    roles = Roles(section["roles"])
    settings = SecuritySettings(
        roles=roles,
        tls=_tls(section["tls_certificate"], section["tls_key"]),
        trusted_proxies=_proxies(section["trusted_proxies"]),
        credentials_file=section["credentials_file"] or None,
        oidc=_oidc(section, roles),
    )
    if settings.credentials_file:
        read_credentials(settings.credentials_file, roles)
    if not settings.has_authentication and (settings.trusted_proxies or not is_loopback(listen.host)):
        reached = (
            "dashboard.trusted_proxies makes the server reachable from other machines"
            if is_loopback(listen.host)
            else f"{listen} is not a loopback address"
        )
        raise UsageError(f"{reached}: set dashboard.credentials_file or dashboard.oidc_issuer, or use 127.0.0.1 without a proxy")
    if not is_loopback(listen.host) and settings.tls is None and not settings.trusted_proxies:
        raise UsageError(
            f"{listen} is not a loopback address: set dashboard.tls_certificate and tls_key, or name the proxies in front that "
            "end TLS in dashboard.trusted_proxies"
        )
    return settings


def _tls(certificate: str, key: str) -> CertificateFiles | None:
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "tls_key" if certificate else "tls_certificate"
        raise UsageError(f"dashboard.{missing} is missing: TLS needs tls_certificate and tls_key")
    files = CertificateFiles(certificate, key)
    # files that cannot be used are refused before the start
    files.context()
    return files


def _proxies(addresses: list[object]) -> tuple[str, ...]:
    for address in addresses:
        try:
            # a name or `*` would be accepted by uvicorn as text that no address equals, or as every address
            network = ipaddress.ip_network(str(address))
        except ValueError as error:
            raise UsageError(f"dashboard.trusted_proxies: {address!r} is not an IP address or network") from error
        if not network.prefixlen:
            raise UsageError(f"dashboard.trusted_proxies: {address!r} is every address: name those of the proxies")
    return tuple(map(str, addresses))


def _oidc(section: Mapping[str, Any], roles: Roles) -> OidcSettings | None:
    issuer = section["oidc_issuer"]
    if not issuer:
        return None
    for name in ("oidc_client_id", "public_url"):
        if not section[name]:
            raise UsageError(f"dashboard.{name} is missing: dashboard.oidc_issuer needs it")
    for name in ("oidc_issuer", "public_url"):
        _expect_https(f"dashboard.{name}", section[name], may_be_local=name == "oidc_issuer")
    if not section["oidc_roles"]:
        raise UsageError('dashboard.oidc_roles is empty: map values of the claim to roles, such as admins = "all"')
    secret_file = section["oidc_client_secret_file"]
    return OidcSettings(
        issuer=issuer,
        client_id=section["oidc_client_id"],
        client_secret=read_secret("dashboard.oidc_client_secret_file", secret_file).strip() if secret_file else None,
        scopes=tuple(dict.fromkeys(["openid", *map(str, section["oidc_scopes"])])),
        name_claim=section["oidc_name_claim"],
        role_claim=section["oidc_role_claim"],
        roles={value: roles.expect(role, f"dashboard.oidc_roles.{value}") for value, role in section["oidc_roles"].items()},
        public_url=section["public_url"].rstrip("/"),
        session_seconds=_positive("session_hours", section) * 3600,
    )


def _expect_https(name: str, url: str, *, may_be_local: bool) -> None:
    parts = urlsplit(url)
    is_local = may_be_local and parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not parts.hostname or parts.username or parts.query or parts.fragment or not (parts.scheme == "https" or is_local):
        raise UsageError(f"{name} must be an https:// address without user, query and fragment")


def _positive(name: str, section: Mapping[str, Any]) -> int:
    value: int = section[name]
    if not value:
        raise UsageError(f"dashboard.{name} is 0: must be 1 or more")
    return value
