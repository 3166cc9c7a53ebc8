"""Checks of certificates: those of this machine in the configuration, and those that brokers and receivers present."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

from coordinator_core.sources.kafka_options import parse_address
from pipelines.alerts.receivers.http import HttpReceiver
from pipelines.alerts.rules_file import load_rules
from pipelines.doctor.certificate_expiry import expiry_of_file, expiry_of_server
from pipelines.doctor.finding import CheckResult, ok, problem, warning
from pipelines.doctor.subject import Subject

#: Time that is left for a renewal.
_SOON_DAYS = 30
_HTTPS = 443

#: Section and key of the files with certificates.
_FILES = (("kafka", "ssl_cafile"), ("kafka", "ssl_certfile"), ("dashboard", "tls_certificate"))


def files(subject: Subject) -> Iterator[CheckResult]:
    """Certificates in files that the configuration names."""
    sections = {"kafka": subject.configuration.kafka, "dashboard": subject.configuration.dashboard}
    for section, key in _FILES:
        path = sections[section][key]
        if path:
            yield _judged(f"{section}.{key} {path}", partial(expiry_of_file, path), subject)


def of_brokers(subject: Subject) -> Iterator[CheckResult]:
    """Certificates of the servers of the address, where the connection uses TLS."""
    if not subject.kafka.get("security_protocol", "").upper().endswith("SSL"):
        return
    for server in parse_address(str(subject.address)).servers:
        host, _, port = server.rpartition(":")
        yield _of_server(f"broker {server}", host.strip("[]"), int(port), subject)


def of_receivers(subject: Subject) -> Iterator[CheckResult]:
    """Certificates of receivers of alerts with an https:// address."""
    assert subject.rules is not None
    for receiver in load_rules(subject.rules).receivers.values():
        url = urlsplit(receiver.endpoint.url) if isinstance(receiver, HttpReceiver) else None
        if url is not None and url.scheme == "https" and url.hostname:
            # the rest of the URL may be a secret
            yield _of_server(f"receiver {receiver.name} ({url.hostname})", url.hostname, url.port or _HTTPS, subject)


def _of_server(what: str, host: str, port: int, subject: Subject) -> CheckResult:
    return _judged(what, partial(expiry_of_server, host, port), subject)


def _judged(what: str, expiry: Callable[[], datetime], subject: Subject) -> CheckResult:
    try:
        at = expiry()
    except (OSError, ValueError) as error:
        return problem(f"{what}: no certificate can be read: {error}", "check the path or address, and that TLS is used there")
    left = at - datetime.fromtimestamp(subject.clock_ms() / 1000, UTC)
    found = f"{what}: the certificate expires {at:%Y-%m-%d}"
    if left.total_seconds() <= 0:
        return problem(f"{what}: the certificate has expired on {at:%Y-%m-%d}", "renew it")
    if left.days < _SOON_DAYS:
        return warning(f"{found}, in {left.days} days", "renew it")
    return ok(found)
