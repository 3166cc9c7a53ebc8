"""`grouplake credential`: print a line for the file of credentials of `grouplake dashboard`."""

import sys
from argparse import ArgumentParser, Namespace
from getpass import getpass

from pipelines.cli.command import Command
from pipelines.runtime.errors import UsageError

_EXAMPLES = """examples:
  grouplake credential token prometheus >> credentials.txt
  grouplake credential password anna --role billing-team >> credentials.txt
  grouplake credential password anna < password.txt >> credentials.txt

Standard output gets the line, which has a hash and no secret. `token` makes a random token and prints it to standard error, once.
`password` reads the password from the terminal, or the first line of standard input. The server reads a changed file within a
second; a removed line ends the access.
"""

_SHORTEST_PASSWORD = 8


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", choices=("token", "password"), help="token: for programs; password: for basic authentication")
    parser.add_argument("name", metavar="NAME", help="name of the user")
    parser.add_argument("--role", default="all", metavar="ROLE", help="a role of [dashboard.roles] (default: all)")


def _run(options: Namespace) -> int:
    from pipelines.dashboard.security.credentials import expect_name
    from pipelines.dashboard.security.hashes import PasswordHash, TokenHash, new_token

    expect_name(options.name, "NAME")
    expect_name(options.role, "--role")
    if options.kind == "token":
        token = new_token()
        print(f"token of {options.name}, not shown again: {token}", file=sys.stderr)
        found: object = TokenHash.of(token)
    else:
        found = PasswordHash.of(_password())
    print(f"{options.name} {options.role} {found}")
    return 0


def _password() -> str:
    if sys.stdin.isatty():
        password = getpass("password: ")
        if getpass("again: ") != password:
            raise UsageError("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if len(password) < _SHORTEST_PASSWORD:
        raise UsageError(f"the password has {len(password)} characters: use {_SHORTEST_PASSWORD} or more")
    return password


COMMAND = Command(
    "credential",
    "print a line for the credentials of the dashboard",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
)
