"""`grouplake credential`: its line is accepted by the dashboard, and has no secret."""

import io
from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.dashboard.security.credentials import read_credentials
from pipelines.dashboard.security.roles import Roles


def test_a_token(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["credential", "token", "prometheus"]) == 0
    printed = capsys.readouterr()
    token = printed.err.strip().rpartition(" ")[2]
    assert len(token) == 43
    assert token not in printed.out
    file = tmp_path / "credentials"
    file.write_text(printed.out)
    user = read_credentials(str(file), Roles({})).user_of_token(token)
    assert user is not None
    assert (user.name, user.role) == ("prometheus", "all")


def test_a_password(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a long password\n"))
    assert main(["credential", "password", "anna", "--role", "team"]) == 0
    printed = capsys.readouterr()
    assert "a long password" not in printed.out + printed.err
    file = tmp_path / "credentials"
    file.write_text(printed.out)
    known, user = read_credentials(str(file), Roles({"team": "x"})).passwords["anna"]
    assert known.matches("a long password")
    assert user.role == "team"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["password", "anna"], "the password has 5 characters: use 8 or more"),
        (["token", "a b"], "NAME: invalid name"),
        (["token", "a", "--role", "x y"], "--role: invalid name"),
    ],
)
def test_invalid_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert main(["credential", *arguments]) == 2
    assert message in capsys.readouterr().err
