"""Settings of the export, from the section `[otlp]` and the standard variables of OpenTelemetry."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from pipelines.runtime.errors import UsageError

_DEFAULT_SECONDS = 60
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class OtlpProtocol(StrEnum):
    """Protocols, by their names in the specification."""

    GRPC = "grpc"
    HTTP = "http/protobuf"


class Signal(StrEnum):
    """Signals, by their names in addresses and, in upper case, in variables."""

    METRICS = "metrics"
    TRACES = "traces"


@dataclass(frozen=True)
class SignalSettings:
    """The collector of one signal.

    `endpoint` is None, and `headers` are empty, if the exporter takes them from variables. `shown` is the address without what
    may be secret in it.
    """

    signal: Signal
    protocol: OtlpProtocol
    endpoint: str | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    shown: str


@dataclass(frozen=True)
class OtlpSettings:
    """The signals that are exported, and the interval in seconds."""

    signals: tuple[SignalSettings, ...]
    interval_seconds: float
    #: Where the endpoints are from, for a message.
    given_by: str


def otlp_settings(section: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> OtlpSettings | None:
    """The settings; None if nothing is exported. The section comes before the variables.

    Raises:
        UsageError: an invalid value. The message never has a header or what may be secret in an address.
    """
    headers = _headers(section["headers"])
    endpoint = section["endpoint"]
    if endpoint:
        _expect_address(endpoint, "otlp.endpoint")
    interval = _interval(section["interval_seconds"], environment)
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    found = (_signal(signal, endpoint, section["protocol"], headers, environment) for signal in Signal)
    signals = tuple(each for each in found if each is not None)
    given_by = "otlp.endpoint" if endpoint else "OTEL_EXPORTER_OTLP_ENDPOINT"
    return OtlpSettings(signals, interval, given_by) if signals else None


def _signal(
    signal: Signal, endpoint: str, protocol: str, headers: Mapping[str, str], environment: Mapping[str, str]
) -> SignalSettings | None:
    if environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower() == "none":
        return None
    chosen = _protocol(signal, protocol, environment)
    if endpoint:
        # the path of a base address is that of the specification; gRPC has none
        address = f"{endpoint.rstrip('/')}/v1/{signal}" if chosen is OtlpProtocol.HTTP else endpoint
        return SignalSettings(signal, chosen, address, headers, _shown(endpoint))
    name, variable = _variable(signal, "ENDPOINT", environment)
    if not variable:
        return None
    if chosen is OtlpProtocol.HTTP or "://" in variable:
        _expect_address(variable, name)
    return SignalSettings(signal, chosen, None, headers, _shown(variable))


def _variable(signal: Signal, what: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Name and value of the variable of a signal, or of the one for all signals."""
    own, common = f"OTEL_EXPORTER_OTLP_{signal.upper()}_{what}", f"OTEL_EXPORTER_OTLP_{what}"
    name = own if environment.get(own) else common
    return name, environment.get(name, "").strip()


def _protocol(signal: Signal, protocol: str, environment: Mapping[str, str]) -> OtlpProtocol:
    name, text = ("otlp.protocol", protocol) if protocol else _variable(signal, "PROTOCOL", environment)
    try:
        return OtlpProtocol(text or OtlpProtocol.HTTP)
    except ValueError:
        raise UsageError(f"{name} is {text!r}: must be one of {', '.join(OtlpProtocol)}") from None


def _interval(seconds: int, environment: Mapping[str, str]) -> float:
    if seconds:
        return seconds
    text = environment.get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    if not text:
        return _DEFAULT_SECONDS
    try:
        ms = float(text)
    except ValueError:
        ms = math.nan
    if not 1 <= ms < math.inf:
        raise UsageError(f"OTEL_METRIC_EXPORT_INTERVAL is {text!r}: must be a number of milliseconds, 1 or more")
    return ms / 1000


def _headers(section: Mapping[str, Any]) -> dict[str, str]:
    for name, value in section.items():
        if not _HEADER.fullmatch(name):
            raise UsageError(f"otlp.headers has {name!r}: not a name of a header")
        if not isinstance(value, str) or not value.isprintable():
            raise UsageError(f"otlp.headers.{name} must be a printable string (its value is not shown)")
    # gRPC has lower-case names only, and in HTTP case does not matter
    return {name.lower(): value for name, value in section.items()}


def _expect_address(address: str, name: str) -> None:
    """Raise UsageError for an address that is not http:// or https:// with a host."""
    example = "use http://HOST:PORT or https://HOST:PORT"
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"{name} is not an address: {example}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{name} is not an address with http:// or https:// and a host: {example}")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{name} has a user or a password: put the credentials into [otlp.headers]")


def _shown(address: str) -> str:
    """Scheme, host and port: a path may have a token."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" if parts.scheme else host
