"""Dashboards with TLS and authentication: certificates, credentials and configurations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from alert_receivers import server_tls
from dashboards import configuration_file
from lag_tables import group_row, lag_row, write_tables

from pipelines.dashboard.security.hashes import PasswordHash, TokenHash, new_token

#: The limited role, and the groups of the tables that it may see.
TEAM = "team"
TEAM_GROUPS = "billing-.*"
PASSWORD = "correct horse battery"


@dataclass
class Access:
    """TLS files and credentials in a folder: a token per role, and a password of `anna`, who has the role `all`."""

    folder: Path
    token: str = field(default_factory=new_token)
    team_token: str = field(default_factory=new_token)

    def __post_init__(self) -> None:
        self.certificate, self.context = server_tls(self.folder)
        self.key = self.folder / "key.pem"
        self.file = self.folder / "credentials.txt"
        self.write_credentials()

    def renew_certificate(self) -> None:
        """Replace the certificate and its key."""
        self.certificate, self.context = server_tls(self.folder)

    def write_credentials(self, *more: str) -> None:
        """Write the file of credentials, with more lines."""
        lines = [
            "# NAME ROLE HASH",
            f"prometheus all {TokenHash.of(self.token)}",
            f"team-bot {TEAM} {TokenHash.of(self.team_token)}",
            f"anna all {PasswordHash.of(PASSWORD)}",
            *more,
        ]
        self.file.write_text("\n".join(lines) + "\n")

    def conf(self, *lines: str, tls: bool = True, sections: Mapping[str, str] | None = None) -> str:
        """A configuration with these credentials, and more lines of `[dashboard]`."""
        files = [f'tls_certificate = "{self.certificate}"', f'tls_key = "{self.key}"'] if tls else []
        text = "\n".join(["poll_ms = 50", f'credentials_file = "{self.file}"', *files, *lines])
        return configuration_file(
            self.folder, {"dashboard": text, "dashboard.roles": f'{TEAM} = "{TEAM_GROUPS}"', **(sections or {})}
        )

    def bearer(self, token: str | None = None) -> dict[str, str]:
        """The header with a token."""
        return {"Authorization": f"Bearer {token or self.token}"}


def two_teams(folder: str) -> str:
    """Tables with groups of two teams on topics of their own."""
    at = datetime.now(UTC)
    names = (("billing-eu", "orders"), ("billing-us\nline", "orders"), ("fraud", "payments"))
    write_tables(
        folder,
        at,
        groups=[group_row(group, 1) for group, _ in names],
        lag=[lag_row(group, topic, 0, 1, 5, sampled_at=at) for group, topic in names],
        group_status=[
            {"group_id": group, "status": "OK", "burrow_status": "OK", "detail": "", "findings": [], "complete": 1.0}
            | {"partitions": 1, "unknown_partitions": 0, "evaluated_at": at}
            for group, _ in names
        ],
    )
    return folder
