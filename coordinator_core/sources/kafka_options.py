"""Addresses `kafka://HOST:PORT,…/TOPIC`, and connection options translated to those of the client library."""

import logging
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka.net.sasl.oauth import AbstractTokenProvider

from coordinator_core.log.errors import LogMisconfigured

SCHEME = "kafka://"

_ADDRESS = re.compile(r"kafka://(?P<servers>[^/]+)/(?P<topic>[a-zA-Z0-9._-]{1,249})")
_USER_INFO = re.compile(r"//.*@")
_SERVER = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\[\]:,\s]+):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """Bootstrap servers `host:port` and the name of a topic."""

    servers: tuple[str, ...]
    topic: str

    def __str__(self) -> str:
        return f"{SCHEME}{','.join(self.servers)}/{self.topic}"


def parse_address(text: str) -> KafkaAddress:
    """Parse `kafka://h1:9092,h2:9092/TOPIC`. Raises LogMisconfigured for any other form."""
    found = _ADDRESS.fullmatch(text)
    servers = tuple(found["servers"].split(",")) if found else ()
    if not found or not all(_is_server(server) for server in servers):
        shown = _USER_INFO.sub("//***@", text)
        raise LogMisconfigured(f"invalid topic address {shown!r}: use kafka://HOST:PORT[,HOST:PORT…]/TOPIC")
    return KafkaAddress(servers, found["topic"])


def _is_server(text: str) -> bool:
    found = _SERVER.fullmatch(text)
    return found is not None and 0 < int(found["port"]) < 65536


class _Token(AbstractTokenProvider):
    """An OAUTHBEARER token, or the current contents of a file that another process refreshes."""

    def __init__(self, token: str | None, file: str | None) -> None:
        self._token, self._file = token, file

    def token(self) -> str:
        """Return the token; the library calls this for every connection."""
        if self._token is not None:
            return self._token
        try:
            return Path(str(self._file)).read_text().strip()
        except OSError as error:
            raise LogMisconfigured(f"sasl_oauth_token_file {self._file}: {error.strerror}") from None


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def _milliseconds(text: str) -> int:
    if int(text) <= 0:
        raise ValueError("expected a positive number of milliseconds")
    return int(text)


def _one_of(*allowed: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text.upper() not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return text.upper()

    return convert


def _file(text: str) -> str:
    if not Path(text).is_file():
        raise ValueError("no such file")
    return text


_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

#: Option → the library's name, and the parser of its value.
_CONVERSIONS: dict[str, tuple[str, Callable[[str], object]]] = {
    "client_id": ("client_id", str),
    "request_timeout_ms": ("request_timeout_ms", _milliseconds),
    "security_protocol": ("security_protocol", _one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    "sasl_mechanism": ("sasl_mechanism", _one_of(*_MECHANISMS)),
    "sasl_username": ("sasl_plain_username", str),
    "sasl_password": ("sasl_plain_password", str),
    "ssl_cafile": ("ssl_cafile", _file),
    "ssl_certfile": ("ssl_certfile", _file),
    "ssl_keyfile": ("ssl_keyfile", _file),
    "ssl_password": ("ssl_password", str),
    "ssl_check_hostname": ("ssl_check_hostname", _boolean),
}
_TOKEN_OPTIONS = ("sasl_oauth_token", "sasl_oauth_token_file")
_RETRY_OPTION = "retry_seconds"
_ISOLATION_OPTION = "isolation_level"
_ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
#: Set by a job that follows the log, never by a user: outages of the brokers have no time limit.
FOLLOWS_OPTION = "follows"

#: Default time limit of retries in an outage, counted from the last response.
DEFAULT_RETRY_SECONDS = 120.0

#: All connection options.
KNOWN_OPTIONS = (*_CONVERSIONS, *_TOKEN_OPTIONS, _RETRY_OPTION, _ISOLATION_OPTION)

#: Options whose values must not appear in messages and logs.
SECRET_OPTIONS = frozenset({"sasl_password", "ssl_password", "sasl_oauth_token"})


def library_options(options: Mapping[str, str]) -> dict[str, object]:
    """Translate the options to configuration of the client library.

    Raises LogMisconfigured, with the option but never a secret value, for an unknown name, an invalid value, or options that
    contradict each other.
    """
    converted: dict[str, object] = {}
    for name, text in options.items():
        if name in _TOKEN_OPTIONS or name in (_RETRY_OPTION, _ISOLATION_OPTION, FOLLOWS_OPTION):
            continue
        if name not in _CONVERSIONS:
            raise LogMisconfigured(f"unknown connection option {name!r} (known: {', '.join(KNOWN_OPTIONS)})")
        library_name, convert = _CONVERSIONS[name]
        try:
            converted[library_name] = convert(str(text))
        except ValueError as error:
            shown = "" if name in SECRET_OPTIONS else f" {text!r}"
            raise LogMisconfigured(f"connection option {name}{shown}: {error}") from None
    _check_security(options, str(converted.get("security_protocol", "PLAINTEXT")), converted.get("sasl_mechanism"))
    if converted.get("sasl_mechanism") == "OAUTHBEARER":
        converted["sasl_oauth_token_provider"] = _Token(options.get("sasl_oauth_token"), options.get("sasl_oauth_token_file"))
    return converted


def reads_committed(options: Mapping[str, str]) -> bool:
    """Whether the isolation level is read_committed. Raises LogMisconfigured for an unknown level."""
    level = options.get(_ISOLATION_OPTION, _ISOLATION_LEVELS[0])
    if level not in _ISOLATION_LEVELS:
        raise LogMisconfigured(f"connection option {_ISOLATION_OPTION} {level!r}: expected {' or '.join(_ISOLATION_LEVELS)}")
    return level == "read_committed"


def retry_seconds(options: Mapping[str, str]) -> float:
    """Time limit of retries in an outage, in seconds. Raises LogMisconfigured for an invalid number."""
    text = options.get(_RETRY_OPTION, str(DEFAULT_RETRY_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise LogMisconfigured(f"connection option {_RETRY_OPTION} {text!r}: expected a number of seconds, 0 or more")
    return seconds


def outage_seconds(options: Mapping[str, str]) -> float:
    """Time limit of an outage in seconds: infinite for a job that follows the log. Raises as `retry_seconds` does."""
    limit = retry_seconds(options)
    return math.inf if FOLLOWS_OPTION in options else limit


def _check_security(options: Mapping[str, str], protocol: str, mechanism: object) -> None:
    given = frozenset(options)
    uses_sasl, uses_tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
    if not uses_sasl and (stray := sorted(name for name in given if name.startswith("sasl_"))):
        raise LogMisconfigured(f"{stray[0]} is set, but security_protocol {protocol} does not use SASL")
    if not uses_tls and (stray := sorted(name for name in given if name.startswith("ssl_"))):
        raise LogMisconfigured(f"{stray[0]} is set, but security_protocol {protocol} does not use TLS")
    if not uses_sasl:
        return
    if mechanism is None:
        raise LogMisconfigured(f"security_protocol {protocol} needs sasl_mechanism ({', '.join(_MECHANISMS)})")
    if mechanism == "OAUTHBEARER":
        if len(given.intersection(_TOKEN_OPTIONS)) != 1:
            raise LogMisconfigured(f"sasl_mechanism OAUTHBEARER needs one of {' and '.join(_TOKEN_OPTIONS)}")
    elif missing := sorted({"sasl_username", "sasl_password"} - given):
        raise LogMisconfigured(f"sasl_mechanism {mechanism} needs {' and '.join(missing)}")


def without_secrets(text: str, options: Mapping[str, str]) -> str:
    """Replace the values of secret options in `text`, which may be a message of a broker or of a library."""
    for name in SECRET_OPTIONS.intersection(options):
        if options[name]:
            text = text.replace(options[name], "***")
    return text


class _NoRequestBodies(logging.Filter):
    """Suppresses debug messages: those of these loggers contain whole requests, with SASL credentials."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG


# Without a handler, every failed attempt of an outage would be a line on standard error where logging is not configured;
# `Patience` reports an outage once.
logging.getLogger("kafka").addHandler(logging.NullHandler())

_NO_REQUEST_BODIES = _NoRequestBodies()
for _name in ("kafka.protocol.parser", "kafka.net.connection"):
    logging.getLogger(_name).addFilter(_NO_REQUEST_BODIES)
