"""Connection options translated to the names of librdkafka (`kafka_options` has them for kafka-python)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coordinator_core.log.errors import LogMisconfigured

#: Connection option → librdkafka's configuration property.
_PROPERTIES = {
    "client_id": "client.id",
    "request_timeout_ms": "socket.timeout.ms",
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_username": "sasl.username",
    "sasl_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
}
_CHECKS_HOST_NAME = "ssl_check_hostname"
_TOKEN, _TOKEN_FILE = "sasl_oauth_token", "sasl_oauth_token_file"
#: The library has no expiry of a token that it did not get itself: it asks again after this time.
_TOKEN_SECONDS = 60.0

_SILENT = logging.getLogger("grouplake.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def client_options(servers: Sequence[str], options: Mapping[str, str], now: Callable[[], float]) -> dict[str, Any]:
    """Return the configuration of a client of librdkafka. `now` is the wall clock in seconds, for the expiry of tokens.

    `options` have been checked by `KafkaSource`. Raises LogMisconfigured if the file of the token is unreadable.
    """
    translated: dict[str, Any] = {_PROPERTIES[name]: value for name, value in options.items() if name in _PROPERTIES}
    if options.get(_CHECKS_HOST_NAME, "true").lower() == "false":
        translated["ssl.endpoint.identification.algorithm"] = "none"
    if _TOKEN in options or _TOKEN_FILE in options:
        translated["oauth_cb"] = lambda _: (_token(options), now() + _TOKEN_SECONDS)
    return {
        "client.id": "grouplake",
        **translated,
        "bootstrap.servers": ",".join(servers),
        # errors are returned by the calls that they concern; without a logger they would be lines on standard error
        "logger": _SILENT,
    }


def _token(options: Mapping[str, str]) -> str:
    if _TOKEN in options:
        return options[_TOKEN]
    path = options[_TOKEN_FILE]
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise LogMisconfigured(f"{_TOKEN_FILE} {path}: {error.strerror}") from None
