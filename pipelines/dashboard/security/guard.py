"""The order of the checks before a request reaches the application."""

import secrets
import time
from typing import Any

from starlette.middleware.sessions import SessionMiddleware
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from pipelines.dashboard.security.authentication import Authentication, NoAuthentication
from pipelines.dashboard.security.credentials import credentials_file
from pipelines.dashboard.security.headers import ReadingMethods, SecurityHeaders
from pipelines.dashboard.security.login_log import LoginLog
from pipelines.dashboard.security.settings import SecuritySettings
from pipelines.dashboard.security.transport import EncryptedTransport, HostNames, LocalHosts
from pipelines.runtime.progress import Progress

#: Browsers accept this prefix only for a cookie of this host, from TLS, for all paths.
_COOKIE = "__Host-grouplake"


def guarded(app: ASGIApp, settings: SecuritySettings, progress: Progress, posts: frozenset[str] = frozenset()) -> ASGIApp:
    """`app` behind the checks. `posts` are the paths that answer POST.

    From outside: headers, host names, proxies, encryption or local names, methods, session, authentication.
    """
    if not settings.has_authentication:
        return SecurityHeaders(HostNames(LocalHosts(ReadingMethods(NoAuthentication(app), posts))), is_private=False)
    log = LoginLog(progress, time.monotonic)
    credentials = credentials_file(settings.credentials_file, settings.roles, progress) if settings.credentials_file else None
    if settings.oidc is not None:
        # Authlib is loaded only where it is used
        from pipelines.dashboard.security.oidc import OidcLogin

        app = OidcLogin(app, settings.oidc, log)
    app = Authentication(app, settings.roles, credentials, log, has_login=settings.oidc is not None)
    if settings.oidc is not None:
        # a key of this process: a restart ends all sessions, and no file holds it
        app = SessionMiddleware(
            app, secrets.token_urlsafe(32), _COOKIE, max_age=settings.oidc.session_seconds, same_site="lax", https_only=True
        )
    app = EncryptedTransport(ReadingMethods(app, posts))
    if settings.trusted_proxies:
        app = _proxied(app, settings.trusted_proxies)
    return SecurityHeaders(HostNames(app), is_private=True)


def _proxied(app: ASGIApp, proxies: tuple[str, ...]) -> ASGIApp:
    """The application with scheme and client that trusted proxies forward. Forwarded headers of others are ignored."""
    # uvicorn has types of its own for the same interface
    middleware: Any = ProxyHeadersMiddleware
    proxied: ASGIApp = middleware(app, list(proxies))
    return proxied
