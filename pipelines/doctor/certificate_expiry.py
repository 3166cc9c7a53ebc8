"""Expiry times of X.509 certificates, from files and from servers.

The standard library returns them only for certificates that it has verified, and an expired one is not verified. So this reads
the field `notAfter` of the DER encoding (RFC 5280, section 4.1).
"""

import re
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_CONNECT_SECONDS = 5

_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17


def expiry_of_file(path: str) -> datetime:
    """The earliest expiry of the certificates in a PEM file. Raises OSError, or ValueError for a file without a certificate."""
    blocks = _PEM.findall(Path(path).read_text(encoding="ascii", errors="replace"))
    if not blocks:
        raise ValueError("no certificate in PEM format")
    return min(expiry_of(ssl.PEM_cert_to_DER_cert(block)) for block in blocks)


def expiry_of_server(host: str, port: int) -> datetime:
    """The expiry of the certificate that a server presents, verified or not. Raises OSError or ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # an expired certificate must be seen too; nothing is sent over this connection
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((host, port), _CONNECT_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    if found is None:
        raise ValueError("the server presents no certificate")
    return expiry_of(found)


def expiry_of(der: bytes) -> datetime:
    """The field `notAfter` of a certificate. Raises ValueError for other bytes."""
    try:
        certificate = _contents(der, 0)
        signed = _contents(der, certificate)
        if der[signed] == _VERSION:
            signed = _end(der, signed)
        # serial number, signature algorithm, issuer
        for _ in range(3):
            signed = _end(der, signed)
        not_before = _contents(der, signed)
        not_after = _end(der, not_before)
        text = der[_start(der, not_after) : _end(der, not_after)].decode("ascii")
        if der[not_after] == _UTC_TIME:
            # two digits of the year: 1950 to 2049
            text = ("20" if int(text[:2]) < 50 else "19") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except IndexError as error:
        raise ValueError("not a certificate") from error


def _contents(der: bytes, at: int) -> int:
    if der[at] != _SEQUENCE:
        raise ValueError("not a certificate")
    return _start(der, at)


def _start(der: bytes, at: int) -> int:
    """Start of the contents of the element at `at`."""
    first = der[at + 1]
    return at + 2 + (first & 0x7F if first & 0x80 else 0)


def _end(der: bytes, at: int) -> int:
    first, start = der[at + 1], _start(der, at)
    return start + (int.from_bytes(der[at + 2 : start], "big") if first & 0x80 else first)
