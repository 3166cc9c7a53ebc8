"""Authentication of requests: bearer tokens, basic authentication, and sessions of OpenID Connect."""

import base64
import binascii
import time
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.dashboard.responses import error_response
from pipelines.dashboard.security.credentials import Credentials, User
from pipelines.dashboard.security.hashes import SHORTEST_TOKEN
from pipelines.dashboard.security.login_log import LoginLog
from pipelines.dashboard.security.passwords import PasswordChecker, TooManyLogins
from pipelines.dashboard.security.reread_files import RereadFiles
from pipelines.dashboard.security.roles import Roles
from pipelines.dashboard.security.transport import OPEN
from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer

#: Paths of the login with OpenID Connect, which answer clients that are not authenticated.
LOGIN, CALLBACK, LOGOUT = "/auth/login", "/auth/callback", "/auth/logout"
_OPEN = OPEN | {LOGIN, CALLBACK, LOGOUT}
#: Keys of a session.
SESSION_NAME, SESSION_ROLE = "name", "role"


@dataclass(frozen=True)
class Refusal:
    """A failed or missing authentication. `reason` is None if the request had no credentials."""

    reason: str | None = None
    is_busy: bool = False


class NoAuthentication:
    """Gives every request the local viewer, who sees everything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["viewer"] = LOCAL_VIEWER
        await self._app(scope, receive, send)


class Authentication:
    """Sets `request.state.viewer`, or answers 401. Browsers are sent to the login where OpenID Connect is configured."""

    def __init__(
        self, app: ASGIApp, roles: Roles, credentials: RereadFiles[Credentials] | None, log: LoginLog, *, has_login: bool
    ) -> None:
        self._app, self._roles, self._file, self._log, self._has_login = app, roles, credentials, log, has_login
        self._passwords = PasswordChecker()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        credentials = self._file.value(time.monotonic()) if self._file else Credentials()
        found = await self._authenticate(request, credentials)
        if isinstance(found, Viewer):
            scope.setdefault("state", {})["viewer"] = found
            await self._app(scope, receive, send)
            return
        if found.reason:
            self._log.failed(found.reason, request.client.host if request.client else None)
        await self._refused(request, found, credentials)(scope, receive, send)

    async def _authenticate(self, request: Request, credentials: Credentials) -> Viewer | Refusal:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "":
                return self._of_session(request)
            case "bearer":
                user = credentials.user_of_token(value.strip()) if len(value) >= SHORTEST_TOKEN else None
                return self._viewer(user, "unknown token")
            case "basic":
                return await self._of_password(value, credentials)
        return Refusal("unknown authentication scheme")

    async def _of_password(self, value: str, credentials: Credentials) -> Viewer | Refusal:
        try:
            name, colon, password = base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError):
            colon = ""
        if not colon:
            return Refusal("invalid basic authentication")
        try:
            user = await self._passwords.user(credentials, name, password)
        except TooManyLogins:
            return Refusal("too many passwords at a time", is_busy=True)
        # users type passwords into the wrong field, so only a name of the file is logged
        return self._viewer(user, f"wrong password of {name}" if name in credentials.passwords else "unknown name")

    def _viewer(self, user: User | None, reason: str) -> Viewer | Refusal:
        viewer = self._roles.viewer(user.name, user.role) if user else None
        return viewer or Refusal(reason)

    def _of_session(self, request: Request) -> Viewer | Refusal:
        session = request.scope.get("session") or {}
        name, role = session.get(SESSION_NAME), session.get(SESSION_ROLE)
        viewer = self._roles.viewer(name, role) if name and role else None
        return viewer or Refusal()

    def _refused(self, request: Request, refusal: Refusal, credentials: Credentials) -> Response:
        if refusal.is_busy:
            response = error_response(request, 503, "too many logins at a time: try again")
            response.headers["Retry-After"] = "1"
            return response
        if self._has_login and not refusal.reason and "text/html" in request.headers.get("accept", ""):
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{LOGIN}?next={quote(target, safe='')}", 303)
        message = "login failed" if refusal.reason else "login required"
        response = error_response(request, 401, f"{message}: send a token or a password of dashboard.credentials_file")
        if credentials.passwords:
            response.headers.append("WWW-Authenticate", 'Basic realm="grouplake", charset="UTF-8"')
        if credentials.tokens or not credentials.passwords:
            response.headers.append("WWW-Authenticate", 'Bearer realm="grouplake"')
        return response
