"""References in configuration files: variables, and credentials as files of one folder."""

from pathlib import Path

import pytest

from pipelines.alerts.section import Section
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.credentials import FILE_KEYS
from pipelines.runtime.errors import UsageError


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "kafka_password").write_text("hunter2\n")
    (folder / "binary").write_bytes(b"\xff\xfe")
    return {"CREDENTIALS_DIRECTORY": str(folder)}


def configured(tmp_path: Path, text: str) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return str(file)


def test_a_credential_is_its_content_without_the_line_break(tmp_path: Path, environment: dict[str, str]) -> None:
    conf = configured(tmp_path, '[kafka]\nsasl_password = "credential:kafka_password"\n')
    configuration = load_configuration(conf, environment)
    assert configuration.kafka["sasl_password"] == "hunter2"
    assert "hunter2" not in repr(configuration)


def test_a_credential_is_its_path_where_the_key_names_a_file(tmp_path: Path, environment: dict[str, str]) -> None:
    conf = configured(tmp_path, '[dashboard]\ntls_key = "credential:kafka_password"\n')
    folder = environment["CREDENTIALS_DIRECTORY"]
    assert load_configuration(conf, environment).dashboard["tls_key"] == f"{folder}/kafka_password"


def test_every_key_that_names_a_file_is_known() -> None:
    configuration = load_configuration(None)
    named = {
        key
        for section in (configuration.kafka, configuration.dashboard)
        for key in section
        if key.endswith("file") or key in {"tls_key", "tls_certificate"}
    }
    # the one of alert rules
    assert named | {"cafile"} == FILE_KEYS


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "cannot read credential .*/missing: No such file or directory"),
        ("binary", "cannot read credential .*/binary: not UTF-8"),
        ("../kafka_password", "invalid name of a credential '../kafka_password'"),
        ("", "invalid name of a credential ''"),
    ],
)
def test_an_unreadable_credential_is_an_error(tmp_path: Path, environment: dict[str, str], name: str, message: str) -> None:
    conf = configured(tmp_path, f'[kafka]\nsasl_password = "credential:{name}"\n')
    with pytest.raises(UsageError, match=rf"^configuration kafka\.sasl_password: {message}"):
        load_configuration(conf, environment)


def test_a_credential_needs_a_folder(tmp_path: Path) -> None:
    conf = configured(tmp_path, '[kafka]\nsasl_password = "credential:kafka_password"\n')
    with pytest.raises(UsageError, match="needs the environment variable CREDENTIALS_DIRECTORY"):
        load_configuration(conf, {})


def test_receivers_of_alerts_use_credentials(environment: dict[str, str]) -> None:
    section = Section("alerts.toml", {"password": "credential:kafka_password"}, environment)
    assert section.text("password") == "hunter2"
    assert section.secrets == ["hunter2"]
