"""Notifications to a service manager."""

import socket
from pathlib import Path

import pytest
from patience import PATIENCE_SECONDS

from pipelines.runtime.service_manager import notify_ready, notify_stopping, with_status


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_a_manager_receives_readiness_status_and_stop(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(PATIENCE_SECONDS)
        manager.bind(name if kind == "file" else f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", name if kind == "file" else f"@{name}")
        printed: list[str] = []
        notify_ready()
        with_status(printed.append)("batch 1:\n3 records read")
        notify_stopping()
        assert [manager.recv(4096) for _ in range(3)] == [b"READY=1", b"STATUS=batch 1: 3 records read", b"STOPPING=1"]
        assert printed == ["batch 1:\n3 records read"]


@pytest.mark.parametrize("address", [None, "", "/no/such/socket"])
def test_work_goes_on_without_a_manager(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if address is None:
        monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    else:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify_ready()
    notify_stopping()
