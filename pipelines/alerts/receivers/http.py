"""Receivers of a POST with a JSON document: no redirects, certificates verified, proxies from the environment."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

from pipelines.alerts.receivers.receiver import DeliveryError
from pipelines.alerts.section import Section
from pipelines.alerts.states import Grouping

#: Bytes of a response that are read, for the message of an error.
_RESPONSE_BYTES = 2_000


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could send the headers, which may hold a token, to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class HttpTarget:
    """URL, headers and trust of an HTTP server. The URL is a secret: that of many chat systems contains a token."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    cafile: str
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, section: Section, path: str = "") -> "HttpTarget":
        """Read the keys of an HTTP server; `path` is appended to the URL."""
        url = section.text("url")
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url or not url.isascii() or not url.isprintable() or " " in url:
            raise section.fail("url", "must begin with http:// or https:// and a host name")
        if parts.username is not None:
            raise section.fail("url", 'contains a user name: use headers = { Authorization = "env:NAME" }')
        headers = section.text_map("headers", resolve=True)
        for name, value in headers.items():
            if not name.isascii() or not value.isprintable() or not value.isascii():
                raise section.fail(f"headers.{name}", "must have printable ASCII characters only")
        cafile = section.text("cafile", "")
        if cafile:
            try:
                ssl.create_default_context(cafile=cafile)
            except (OSError, ssl.SSLError) as error:
                raise section.fail("cafile", f"is {cafile!r}, which cannot be read: {error}") from error
        hidden = (parts.path, parts.query) if len(parts.path) > 1 else (parts.query,)
        secrets = (*section.secrets, *headers.values(), *(each for each in hidden if each))
        return cls(url.rstrip("/") + path if path else url, headers, cafile, secrets)

    def post(self, document: object, timeout_seconds: float) -> None:
        """POST a document. Raises DeliveryError unless the response is a success."""
        body = json.dumps(document, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"grouplake/{metadata.version('grouplake')}", **self.headers}
        request = urllib.request.Request(self.url, body, headers, method="POST")
        context = ssl.create_default_context(cafile=self.cafile or None)
        opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))
        try:
            with opener.open(request, timeout=timeout_seconds) as response:
                response.read(_RESPONSE_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                excerpt = error.read(_RESPONSE_BYTES).decode(errors="replace")
            raise DeliveryError(f"HTTP {error.code} {error.reason}: {excerpt}".rstrip(": ")) from error
        except urllib.error.URLError as error:
            raise DeliveryError(str(error.reason)) from error
        except (OSError, http.client.HTTPException) as error:
            raise DeliveryError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class HttpReceiver:
    """A receiver that is an HTTP server."""

    name: str
    grouping: Grouping
    timeout_seconds: float
    endpoint: HttpTarget

    @property
    def secrets(self) -> tuple[str, ...]:
        """Parts of the URL, and values of headers."""
        return self.endpoint.secrets
