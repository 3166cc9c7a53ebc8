"""An OpenID provider on loopback: real HTTPS, Authlib's own grants with PKCE, and signed ID tokens."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import AuthorizationCodeMixin
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

CLIENT_ID, CLIENT_SECRET = "grouplake-client", "s3cret-of-the-client"
Claims = dict[str, Any]


class _Client(ClientMixin):
    """The only registered client."""

    redirect_uri = ""

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == self.redirect_uri

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return (method, endpoint) == ("client_secret_basic", "token")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass
class _Code(AuthorizationCodeMixin):
    """An authorization code that was not used yet."""

    code: str
    redirect_uri: str
    scope: str
    nonce: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str:
        return self.nonce

    def get_auth_time(self) -> None:
        return None


@dataclass
class OpenIdProvider:
    """State of a running provider. It logs in `user` without a page; None: it refuses the login.

    `tamper` changes the claims of ID tokens, `key` signs them; `published` are the keys that the provider shows.
    """

    issuer: str = ""
    user: Claims | None = field(default_factory=lambda: {"sub": "1", "preferred_username": "anna", "groups": ["kafka-admins"]})
    tamper: Callable[[Claims], Claims] = field(default=lambda claims: claims)
    algorithm: str = "RS256"
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "first"}))
    published: RSAKey | None = None
    has_id_token: bool = True
    client: _Client = field(default_factory=_Client)
    codes: dict[str, _Code] = field(default_factory=dict)
    #: Parameters of the authorization requests, and names of the parameters of the token requests.
    requests: list[dict[str, str]] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)

    def description(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }


class _Grant(AuthorizationCodeGrant):
    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        data = request.payload.data
        names = ("redirect_uri", "scope", "nonce", "code_challenge", "code_challenge_method")
        self.server.provider.codes[code] = _Code(code, *(data.get(name, "") for name in names))

    def query_authorization_code(self, code: str, _client: object) -> _Code | None:
        found: _Code | None = self.server.provider.codes.get(code)
        return found

    def delete_authorization_code(self, authorization_code: _Code) -> None:
        del self.server.provider.codes[authorization_code.code]

    def authenticate_user(self, _authorization_code: _Code) -> Claims | None:
        found: Claims | None = self.server.provider.user
        return found


class _IdToken(OpenIDCode):
    def __init__(self, provider: OpenIdProvider) -> None:
        super().__init__(require_nonce=True)
        self._provider = provider

    def exists_nonce(self, _nonce: str, _request: object) -> bool:
        return False

    def resolve_client_private_key(self, _client: object) -> RSAKey:
        return self._provider.key

    def get_client_claims(self, client: _Client) -> Claims:
        return {"iss": self._provider.issuer, "aud": [client.get_client_id()]}

    def get_encode_header(self, _client: object) -> dict[str, Any]:
        return {"alg": self._provider.algorithm, "kid": self._provider.key.kid}

    def get_client_algorithm(self, _client: object) -> str:
        return self._provider.algorithm

    def get_compatible_claims(self, request: OAuth2Request) -> Claims:
        claims: Claims = super().get_compatible_claims(request)
        return claims

    def get_authorization_code_claims(self, authorization_code: _Code) -> Claims:
        claims: Claims = super().get_authorization_code_claims(authorization_code)
        return claims

    def generate_user_info(self, user: Claims, _scope: str) -> Claims:
        return user

    def process_token(self, grant: Any, response: Any) -> Any:
        return super().process_token(grant, response) if self._provider.has_id_token else response[1]

    def encode_id_token(self, token: Claims, request: OAuth2Request) -> str:
        provider = self._provider
        claims = {**self.get_compatible_claims(request), **self.get_authorization_code_claims(request.authorization_code)}
        claims = provider.tamper({**claims, **self.generate_user_info(request.user, token["scope"])})
        return _signed(self.get_encode_header(request.client), claims, provider)


def _signed(header: dict[str, Any], claims: Claims, provider: OpenIdProvider) -> str:
    if provider.algorithm == "none":
        return (
            ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (header, claims)) + "."
        )
    # HS256: the secret of the client, which every user of a public client knows
    key = OctKey.import_key(CLIENT_SECRET * 2) if provider.algorithm == "HS256" else provider.key
    return jwt.encode(header, claims, key, algorithms=[provider.algorithm])


class _Request(OAuth2Request):
    def __init__(self, method: str, uri: str, data: dict[str, str], headers: Any) -> None:
        super().__init__(method, uri, headers=headers)
        self.payload = BasicOAuth2Payload(data)
        self._data = data

    @property
    def args(self) -> dict[str, str]:
        return self._data

    @property
    def form(self) -> dict[str, str]:
        return self._data


class _Server(AuthorizationServer):
    """Authlib's server over requests that are already parsed."""

    def __init__(self, provider: OpenIdProvider) -> None:
        super().__init__()
        self.provider = provider
        self.register_token_generator("default", BearerTokenGenerator(lambda *_, **__: "access-token-of-the-provider"))
        self.register_grant(_Grant, [CodeChallenge(required=True), _IdToken(provider)])

    def query_client(self, client_id: str) -> _Client | None:
        return self.provider.client if client_id == CLIENT_ID else None

    def save_token(self, _token: Claims, _request: object) -> None:
        """Nothing is kept."""

    def send_signal(self, *_: object, **__: object) -> None:
        """No signals."""

    def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, Any]:
        return status, body, headers


@contextmanager
def openid_provider(tls: ssl.SSLContext) -> Iterator[OpenIdProvider]:
    """A running provider."""
    provider = OpenIdProvider()
    server = _Server(provider)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            match parts.path:
                case "/.well-known/openid-configuration":
                    self._send(200, provider.description(), [])
                case "/keys":
                    self._send(200, KeySet([provider.published or provider.key]).as_dict(private=False), [])
                case "/authorize":
                    data = dict(parse_qsl(parts.query))
                    provider.requests.append(data)
                    request = self._request(data)
                    grant = server.get_authorization_grant(request)
                    self._send(*server.create_authorization_response(request, grant_user=provider.user, grant=grant))
                case _:
                    self._send(404, {}, [])

        def do_POST(self) -> None:
            data = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            provider.verified.append(data.get("code_verifier", ""))
            self._send(*server.create_token_response(self._request(data)))

        def _request(self, data: dict[str, str]) -> _Request:
            return _Request(self.command, f"{provider.issuer}{self.path}", data, self.headers)

        def _send(self, status: int, body: Any, headers: Any) -> None:
            content = (json.dumps(body) if isinstance(body, dict) else body or "").encode()
            self.send_response(status)
            given = dict(headers)
            for name, value in ({"Content-Type": "application/json"} | given | {"Content-Length": str(len(content))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.socket = tls.wrap_socket(http.socket, server_side=True)
    provider.issuer = f"https://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
