"""Values of configuration files that are kept elsewhere: in the environment, or in files of credentials.

Systemd, Docker Compose and Kubernetes hand secrets to a process as files of one folder. `$CREDENTIALS_DIRECTORY` names it, so one
configuration file works under each of them.
"""

import os
from collections.abc import Mapping
from pathlib import Path

_VARIABLE = "env:"
_CREDENTIAL = "credential:"
_FOLDER = "CREDENTIALS_DIRECTORY"

#: Keys whose value is the path of a file. There a credential stands for its path, elsewhere for its content.
FILE_KEYS = frozenset(
    {
        "cafile",
        "credentials_file",
        "oidc_client_secret_file",
        "owners_file",
        "sasl_oauth_token_file",
        "ssl_cafile",
        "ssl_certfile",
        "ssl_keyfile",
        "tls_certificate",
        "tls_key",
    }
)


def is_kept_elsewhere(value: str) -> bool:
    """Whether `value` is a reference, `env:NAME` or `credential:NAME`."""
    return value.startswith((_VARIABLE, _CREDENTIAL))


def resolve(key: str, value: str, environment: Mapping[str, str] = os.environ) -> str:
    """The value that `value` stands for under `key`: itself if it is not a reference.

    Raises ValueError, with the reason, if a variable is not set or a credential cannot be read.
    """
    if value.startswith(_VARIABLE):
        variable = value.removeprefix(_VARIABLE)
        if variable not in environment:
            raise ValueError(f"environment variable {variable} is not set")
        return environment[variable]
    if value.startswith(_CREDENTIAL):
        return _credential(key, value.removeprefix(_CREDENTIAL), environment)
    return value


def _credential(key: str, name: str, environment: Mapping[str, str]) -> str:
    folder = environment.get(_FOLDER)
    if not folder:
        raise ValueError(f"credential {name!r} needs the environment variable {_FOLDER}, the folder of credentials")
    if not name or Path(name).name != name:
        raise ValueError(f"invalid name of a credential {name!r}: use the name of a file in {folder}")
    path = Path(folder) / name
    try:
        # editors and `echo` end a file with a line break, which is part of no secret
        content = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ValueError(f"cannot read credential {path}: {reason}") from error
    return str(path) if key in FILE_KEYS else content
