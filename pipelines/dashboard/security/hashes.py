"""Hashes of tokens and passwords, and their text in a file of credentials.

A token has 256 random bits, which no guess finds, so one SHA-256 is enough, and a scrape costs no time. A password may be weak,
so its hash is slow: scrypt with the parameters that OWASP recommends for 16 MiB of memory.
"""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

_TOKEN_BYTES = 32
#: Characters of a token below which it is refused: a file could hold the hash of a weak one.
SHORTEST_TOKEN = 32
_SHA_256 = re.compile(r"sha256:(?P<digest>[0-9a-f]{64})")
_SCRYPT = re.compile(
    r"scrypt:(?P<n>[0-9]{1,7}):(?P<r>[0-9]{1,2}):(?P<p>[0-9]{1,2}):(?P<salt>[A-Za-z0-9+/]{16,88}={0,2}):(?P<key>[A-Za-z0-9+/]{43}=)"
)
#: Memory of one check of a password; a file with larger parameters is refused.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class TokenHash:
    """SHA-256 of a token."""

    digest: bytes

    @classmethod
    def of(cls, token: str) -> "TokenHash":
        """The hash of a token."""
        return cls(hashlib.sha256(token.encode()).digest())

    def matches(self, other: "TokenHash") -> bool:
        """Comparison in constant time."""
        return hmac.compare_digest(self.digest, other.digest)

    def __str__(self) -> str:
        return f"sha256:{self.digest.hex()}"


@dataclass(frozen=True)
class PasswordHash:
    """scrypt of a password, with its parameters."""

    salt: bytes
    key: bytes
    n: int = 1 << 14
    r: int = 8
    p: int = 5

    @classmethod
    def of(cls, password: str) -> "PasswordHash":
        """A new hash of a password."""
        salt = secrets.token_bytes(16)
        return cls(salt, _scrypt(password, salt, cls.n, cls.r, cls.p))

    def matches(self, password: str) -> bool:
        """True for the password. It takes 0.2 s and 16 MiB."""
        return hmac.compare_digest(self.key, _scrypt(password, self.salt, self.n, self.r, self.p))

    def __str__(self) -> str:
        salt, key = (base64.b64encode(each).decode("ascii") for each in (self.salt, self.key))
        return f"scrypt:{self.n}:{self.r}:{self.p}:{salt}:{key}"


def new_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def parse_hash(text: str) -> TokenHash | PasswordHash:
    """The hash that `text` describes. Raises ValueError for another text; the message does not contain it."""
    if found := _SHA_256.fullmatch(text):
        return TokenHash(bytes.fromhex(found["digest"]))
    found = _SCRYPT.fullmatch(text)
    if found is None:
        raise ValueError("invalid hash: use sha256:… for a token, scrypt:… for a password (see `grouplake credential`)")
    n, r, p = (int(found[name]) for name in "nrp")
    if n < 2 or n & (n - 1) or not r or not p or 128 * n * r > _MOST_BYTES:
        raise ValueError(f"invalid parameters of scrypt: n {n}, r {r}, p {p}")
    return PasswordHash(base64.b64decode(found["salt"]), base64.b64decode(found["key"]), n, r, p)


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    # OpenSSL refuses parameters that need more, and counts more than the 128 n r of the definition
    return hashlib.scrypt(
        password.encode(), salt=salt, n=n, r=r, p=p, maxmem=128 * n * r + 128 * r * (p + 2) + (1 << 20), dklen=32
    )
