"""Checks of passwords: slow by intent, so few at a time, and once per password of a client."""

import asyncio
import hashlib
import hmac
import secrets

from cachetools import LRUCache

from pipelines.dashboard.security.credentials import Credentials, User
from pipelines.dashboard.security.hashes import PasswordHash

#: Checks at a time, each with 16 MiB and one core.
_CHECKS = 2
#: Checks that wait; further ones are refused.
_WAITING = 16
_REMEMBERED = 256
_LONGEST_PASSWORD = 1_024


class TooManyLogins(Exception):
    """More passwords wait for their check than are allowed."""


class PasswordChecker:
    """Checks passwords in threads. Successful checks are remembered, as a scrape sends its password every few seconds."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_CHECKS)
        self._pending = 0
        # the keyed hash of a password is worth nothing outside of this process
        self._key = secrets.token_bytes(32)
        self._remembered: LRUCache[bytes, bool] = LRUCache(_REMEMBERED)
        # an unknown name takes as long as a wrong password
        self._unknown = PasswordHash(secrets.token_bytes(16), secrets.token_bytes(32))

    async def user(self, credentials: Credentials, name: str, password: str) -> User | None:
        """The user of a name and password; None if they do not fit. Raises TooManyLogins."""
        known, user = credentials.passwords.get(name, (self._unknown, None))
        if len(password) > _LONGEST_PASSWORD:
            return None
        # with the hash in it, so that a new password in the file ends the use of the old one
        seen = hmac.digest(self._key, b"\0".join((name.encode(), str(known).encode(), password.encode())), hashlib.sha256)
        if self._remembered.get(seen):
            return user
        if self._pending >= _CHECKS + _WAITING:
            raise TooManyLogins
        self._pending += 1
        try:
            async with self._slots:
                is_right = await asyncio.to_thread(known.matches, password)
        finally:
            self._pending -= 1
        if not is_right or user is None:
            return None
        self._remembered[seen] = True
        return user
