"""Files that every executor of a cluster needs."""

from pathlib import Path

import pytest

from pipelines.job.shared_files import absolute_address, shared_files
from pipelines.source.address import parse_address


def test_a_log_on_disk_and_local_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    address = parse_address("segments:log")
    assert shared_files(address, {}, "tables") == {str(tmp_path / "log"): False, str(tmp_path / "tables" / "offsets"): True}
    assert f"{absolute_address(address)}" == f"segments:{tmp_path}/log"


def test_certificates_and_tables_in_an_object_store() -> None:
    kafka = {"ssl_cafile": "/etc/ca.pem", "ssl_keyfile": "", "client_id": "x"}
    assert shared_files(parse_address("kafka://broker:9093"), kafka, "s3://bucket/groups") == {"/etc/ca.pem": False}


def test_brokers_have_no_path() -> None:
    address = parse_address("kafka://broker:9092")
    assert absolute_address(address) == address
