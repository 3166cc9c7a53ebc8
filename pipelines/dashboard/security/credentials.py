"""The file of credentials: `NAME ROLE HASH` a line, for bearer tokens and for passwords."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.dashboard.security.hashes import PasswordHash, TokenHash, parse_hash
from pipelines.dashboard.security.reread_files import RereadFiles
from pipelines.dashboard.security.roles import Roles
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress

#: Names of users, without the colon that ends them in basic authentication.
_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,100}")


@dataclass(frozen=True)
class User:
    """A user and its role."""

    name: str
    role: str


@dataclass(frozen=True)
class Credentials:
    """Hashes of all tokens and passwords."""

    tokens: tuple[tuple[TokenHash, User], ...] = field(default=(), repr=False)
    passwords: Mapping[str, tuple[PasswordHash, User]] = field(default_factory=dict, repr=False)

    def user_of_token(self, token: str) -> User | None:
        """The user of a token. Every hash is compared, so the time does not depend on the token."""
        given = TokenHash.of(token)
        found = [user for known, user in self.tokens if known.matches(given)]
        return found[0] if found else None


def read_credentials(path: str, roles: Roles) -> Credentials:
    """Read the file.

    Raises:
        UsageError: it cannot be read, or a line is invalid; the message does not contain the hash.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"dashboard.credentials_file: cannot read {path}: {reason}") from error
    tokens: list[tuple[TokenHash, User]] = []
    passwords: dict[str, tuple[PasswordHash, User]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        where = f"{path}, line {number}"
        user, known = _parse_line(parts, roles, where)
        if isinstance(known, TokenHash):
            tokens.append((known, user))
        elif user.name in passwords:
            raise UsageError(f"{where}: a second password of {user.name}")
        else:
            passwords[user.name] = known, user
    if not tokens and not passwords:
        raise UsageError(f"{path} has no credentials: `grouplake credential` prints a line for it")
    return Credentials(tuple(tokens), passwords)


def expect_name(name: str, where: str) -> None:
    """Raise UsageError unless `name` can be the name of a user; the message does not contain it."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: invalid name: use 1–100 letters, digits, '.', '_', '@' or '-'")


def _parse_line(parts: list[str], roles: Roles, where: str) -> tuple[User, TokenHash | PasswordHash]:
    # no message repeats the parts of a line that may be a secret in the wrong place
    if len(parts) != 3:
        raise UsageError(f"{where}: {len(parts)} words: use NAME ROLE HASH")
    name, role, text = parts
    expect_name(name, where)
    if role not in roles:
        raise UsageError(f"{where}: unknown role of {name} (roles: {', '.join(roles)})")
    try:
        return User(name, role), parse_hash(text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def credentials_file(path: str, roles: Roles, progress: Progress) -> RereadFiles[Credentials]:
    """The credentials of a file that may change while the server runs: a removed line takes effect within a second.

    Raises:
        UsageError: the file is invalid at the start.
    """

    def report(error: UsageError | None) -> None:
        if error is None:
            progress(f"credentials: {path} is loaded")
        else:
            progress(f"credentials: the previous ones are used: {error}")

    return RereadFiles([path], lambda: read_credentials(path, roles), report)
