"""`grouplake doctor` with tables in an object store: sound, without conditional writes, without its bucket."""

from pathlib import Path

import pytest
from doctor_findings import Doctor
from object_stores import moto_server
from store_proxy import store_proxy
from store_roots import lead_to

from pipelines.tables.object_stores import Objects


def test_an_object_store(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    doctor = Doctor(capsys)
    with moto_server() as server:
        lead_to(server, monkeypatch)
        root = server.new_root()
        found = doctor.examine("--tables", root)
        assert found.marks("tables") == {"object store": "ok", "conditional writes": "ok", "last batch": "ok"}
        # nothing of the probe stays
        assert Objects(root).keys("") == []

        missing = doctor.examine("--tables", "s3://no-such-bucket/prod")
        assert "problem" in missing.marks("tables").values()

        with store_proxy(server.endpoint, "ignores conditions", tmp_path / "proxy") as proxy:
            lead_to(server.behind(proxy.address), monkeypatch)
            root = server.new_root()
            ((mark, text),) = doctor.examine("--tables", root).of("tables", "conditional writes")
        assert mark == "problem"
        assert "it replaced an object that existed" in text
