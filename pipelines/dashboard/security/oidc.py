"""Login with OpenID Connect: authorization code with PKCE, state and nonce. Authlib checks the response and the ID token."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from joserfc.errors import JoseError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.dashboard.responses import error_response
from pipelines.dashboard.security.authentication import CALLBACK, LOGIN, LOGOUT, SESSION_NAME, SESSION_ROLE
from pipelines.dashboard.security.login_log import LoginLog
from pipelines.dashboard.security.settings import OidcSettings

_HTTP_ERRORS: tuple[type[Exception], ...] = (httpx.HTTPError,)
with suppress(ImportError):
    # Authlib prefers it to httpx if another package, such as `mcp`, has brought it
    import httpx2

    _HTTP_ERRORS += (httpx2.HTTPError,)

_PROVIDER_SECONDS = 10
#: Signatures with public keys. A provider may also list `none` and signatures with the secret of the client.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
_NEXT = "next"
_LONGEST_NEXT = 2_000
_LONGEST_NAME = 200
#: A path of this server: `//host` and `/\host` are other hosts to browsers.
_LOCAL_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")


class OidcLogin:
    """The routes of the login, before the application."""

    def __init__(self, app: ASGIApp, settings: OidcSettings, log: LoginLog) -> None:
        self._app, self._settings, self._log = app, settings, log
        oauth = OAuth()
        self._client = oauth.register(
            "oidc",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            server_metadata_url=f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": " ".join(settings.scopes),
                "code_challenge_method": "S256",
                "token_endpoint_auth_method": "client_secret_basic" if settings.client_secret else "none",
                "timeout": _PROVIDER_SECONDS,
            },
        )
        self._routes = Starlette(
            routes=[
                Route(LOGIN, self._login, methods=["GET"]),
                Route(CALLBACK, self._callback, methods=["GET"]),
                Route(LOGOUT, self._logout, methods=["GET"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_login = scope["type"] == "http" and scope["path"] in (LOGIN, CALLBACK, LOGOUT)
        await (self._routes if is_login else self._app)(scope, receive, send)

    async def _login(self, request: Request) -> Response:
        """Send the browser to the provider."""
        target = request.query_params.get(_NEXT, "/")
        try:
            await self._metadata()
            request.session.clear()
            request.session[_NEXT] = target if len(target) <= _LONGEST_NEXT and _LOCAL_PATH.fullmatch(target) else "/"
            redirect: Response = await self._client.authorize_redirect(request, f"{self._settings.public_url}{CALLBACK}")
        except (*_HTTP_ERRORS, AuthlibBaseError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            return self._unavailable(request, error)
        return redirect

    async def _callback(self, request: Request) -> Response:
        """Check the response of the provider and begin a session."""
        if "error" in request.query_params:
            return self._failed(request, "the provider refused the login")
        try:
            await self._metadata()
            token = await self._client.authorize_access_token(request, claims_options=self._claims_options())
        except _HTTP_ERRORS as error:
            return self._unavailable(request, error)
        # ValueError and KeyError: responses that are not what the protocol prescribes
        except (AuthlibBaseError, JoseError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            return self._failed(request, f"invalid response of the provider ({type(error).__name__})")
        claims = token.get("userinfo")
        if not claims:
            return self._failed(request, "the provider sent no ID token")
        target = request.session.get(_NEXT, "/")
        name = str(claims.get(self._settings.name_claim) or claims["sub"])[:_LONGEST_NAME]
        role = _role(claims.get(self._settings.role_claim), self._settings.roles)
        # nothing of the login remains: the cookie can be read, though not changed
        request.session.clear()
        if role is None:
            self._log.failed("no role for the claim of the provider", _host(request))
            return error_response(
                request, 403, f"no role: no value of your claim {self._settings.role_claim!r} is in dashboard.oidc_roles"
            )
        request.session.update({SESSION_NAME: name, SESSION_ROLE: role})
        return RedirectResponse(target, 303)

    async def _logout(self, request: Request) -> Response:
        """End the session of the browser. The one at the provider continues."""
        request.session.clear()
        return error_response(request, 200, f"logged out; {LOGIN} logs in again")

    async def _metadata(self) -> None:
        """Load the description of the provider, and restrict it to what is accepted."""
        metadata: dict[str, Any] = await self._client.load_server_metadata()
        if metadata.get("issuer") != self._settings.issuer:
            # it is loaded again at the next login
            self._client.server_metadata = {}
            raise ValueError("the description of the provider has another issuer")
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = [each for each in offered if each in _ALGORITHMS]

    def _claims_options(self) -> dict[str, dict[str, object]]:
        """Claims that must have these values. Authlib accepts another audience with a fitting `azp`."""
        return {
            "iss": {"essential": True, "value": self._settings.issuer},
            "aud": {"essential": True, "value": self._settings.client_id},
        }

    def _failed(self, request: Request, reason: str) -> Response:
        self._log.failed(reason, _host(request))
        request.session.clear()
        return error_response(request, 403, f"login failed: {reason}; {LOGIN} begins again")

    def _unavailable(self, request: Request, error: Exception) -> Response:
        # the text of an error may have an address with parameters
        reason = f"the provider is not available ({type(error).__name__})"
        self._log.failed(reason, _host(request))
        return error_response(request, 502, f"{reason}: try again")


def _role(claim: object, roles: Mapping[str, str]) -> str | None:
    """The role of the first configured value that the claim has."""
    values = {each for each in (claim if isinstance(claim, list) else [claim]) if isinstance(each, str)}
    return next((role for value, role in roles.items() if value in values), None)


def _host(request: Request) -> str | None:
    return request.client.host if request.client else None
