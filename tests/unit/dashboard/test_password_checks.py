"""Checks of passwords: a bounded number at a time, remembered only for the hash that they were made with."""

import asyncio
import hashlib

from pipelines.dashboard.security.credentials import Credentials, User
from pipelines.dashboard.security.hashes import PasswordHash
from pipelines.dashboard.security.passwords import PasswordChecker, TooManyLogins

ANNA = User("anna", "all")


class CountedHash(PasswordHash):
    """A fast hash that counts its checks."""

    checks = 0

    def matches(self, password: str) -> bool:
        type(self).checks += 1
        return super().matches(password)


def credentials(password: str, salt: bytes) -> Credentials:
    key = hashlib.scrypt(password.encode(), salt=salt, n=2, r=1, p=1, dklen=32)
    return Credentials(passwords={"anna": (CountedHash(salt, key, 2, 1, 1), ANNA)})


def test_a_success_is_remembered_until_the_hash_changes() -> None:
    async def run() -> None:
        checker = PasswordChecker()
        old, new = credentials("old password", b"1" * 16), credentials("new password", b"2" * 16)
        CountedHash.checks = 0
        for _ in range(3):
            assert await checker.user(old, "anna", "old password") == ANNA
        assert CountedHash.checks == 1
        for _ in range(2):
            assert await checker.user(old, "anna", "wrong") is None
        assert CountedHash.checks == 3
        assert await checker.user(new, "anna", "old password") is None
        assert await checker.user(new, "anna", "new password") == ANNA
        assert await checker.user(Credentials(), "anna", "new password") is None
        assert await checker.user(new, "anna", "x" * 2_000) is None

    asyncio.run(run())


def test_more_logins_than_may_wait_are_refused() -> None:
    async def run() -> None:
        checker = PasswordChecker()
        known = credentials("password", b"1" * 16)
        found = await asyncio.gather(*(checker.user(known, "anna", "wrong") for _ in range(25)), return_exceptions=True)
        assert sum(isinstance(each, TooManyLogins) for each in found) == 7
        assert found.count(None) == 18
        assert await checker.user(known, "anna", "password") == ANNA

    asyncio.run(run())
