"""`grouplake run` and `grouplake dashboard` export to a receiver: series equal to `/metrics`, and the batches of the run."""

from pathlib import Path

import pytest
from appended_logs import NOW_MS, commit, opened
from created_tables import created_tables
from dashboards import configuration_file, dashboard
from eventually import eventually
from lag_tables import SAMPLED_AT, group_row, lag_row, write_tables
from metrics_text import series
from otlp_receiver import attributes, grpc_receiver, http_receiver, points
from patience import PATIENCE_SECONDS

from coordinator_core.segment_log.settings import SegmentLogSettings
from pipelines.cli import extras, main
from pipelines.cli.otlp_option import otlp_export_of
from pipelines.metrics.settings import metrics_settings
from pipelines.metrics.site import Site
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import at_ms
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter


@pytest.fixture(autouse=True)
def _patient_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last export has the time that a busy machine needs."""
    monkeypatch.setattr("pipelines.otlp.export._END_SECONDS", PATIENCE_SECONDS)


def test_a_run_exports_its_series_and_its_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log = opened(tmp_path / "log", SegmentLogSettings())
    log.partition(0).append([commit(b"key", b"1"), commit(b"key", b"2")], NOW_MS)
    log.close()
    # tables with a batch, so that the run needs no Spark
    tables = tmp_path / "tables"
    writer = TablesWriter.claim(created_tables(tables))
    writer.begin()
    writer.finish(Phases(at_ms(NOW_MS)), at_ms(NOW_MS), era="4", retention_ms=1, next_offsets={})
    monkeypatch.setenv("COLLECTOR", "5ecret")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "lake")
    with grpc_receiver() as received:
        conf = configuration_file(
            tmp_path,
            {
                "otlp": f'endpoint = "{received.address}"\nprotocol = "grpc"\ninterval_seconds = 3_600',
                "otlp.headers": 'x-token = "env:COLLECTOR"',
                "lag": "interval_seconds = 0",
            },
        )
        assert main(["run", "--source", f"segments:{tmp_path / 'log'}", "--tables", str(tables), "--conf", conf]) == 0
    assert {each["x-token"] for each in received.headers} == {"5ecret"}
    printed = capfd.readouterr().err
    assert f"otlp: metrics and traces to {received.address}, every 3600 s" in printed
    assert "5ecret" not in printed

    found, resources = points(received.metrics)
    site = Site({"tables": str(tables)}, metrics_settings(load_configuration(None).metrics), 1, print)
    site.refresh()
    process = {"grouplake_otlp_dropped_points", "grouplake_otlp_dropped_spans", "grouplake_log_behind_offsets"}
    assert {name: of_name for name, of_name in found.items() if name not in process} == series(site.metrics().text)
    assert {each["service.name"] for each in resources} == {"lake"}

    batch = TableStore(str(tables)).last_batch()
    assert batch is not None
    spans = received.spans()
    roots = {attributes(span.attributes)["grouplake.batch_id"]: span for span in spans if span.name == "batch"}
    # before it a batch states the retention
    assert list(roots) == [1, 2]
    root = roots[batch.batch_id]
    assert attributes(root.attributes) == {
        "grouplake.batch_id": batch.batch_id,
        "grouplake.records_read": 2,
        "grouplake.records_kept": batch.records_kept,
    }
    assert {span.name for span in spans if span.parent_span_id == root.span_id} == set(batch.phase_ms)
    assert {"read", "plan", "write_offsets"} <= set(batch.phase_ms)
    rows = {span.name: attributes(span.attributes) for span in spans if span.name.startswith("write_")}
    assert all(list(each) == ["grouplake.rows"] for each in rows.values())


def test_the_page_exports_what_it_serves(tmp_path: Path) -> None:
    root = str(tmp_path / "east")
    write_tables(root, groups=[group_row("billing")], lag=[lag_row("billing", "orders", 0, 1, 3, sampled_at=SAMPLED_AT)])
    with http_receiver() as received:
        conf = configuration_file(
            tmp_path, {"otlp": f'endpoint = "{received.address}"\ninterval_seconds = 1', "metrics": "stale_seconds = 0"}
        )
        with dashboard(root, conf=conf) as page:
            served = series(page.get("/metrics").content)
            found = eventually(
                "an export of the loaded tables",
                lambda: points(received.metrics[-1:])[0],
                lambda found: "grouplake_batch_id" in found,
                unless=page.failure,
            )
            assert found == served
            assert "kafka_consumergroup_group_lag" in found
            assert page.end() == 0
            assert page.errors().splitlines()[0] == f"otlp: metrics to {received.address}, every 1 s"
    assert received.traces == []


def test_a_collector_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = configuration_file(tmp_path, {"otlp": 'endpoint = "http://127.0.0.1:1"'})
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    said: list[str] = []
    with pytest.raises(UsageError, match=r"otlp.endpoint needs the package opentelemetry.sdk: pip install 'grouplake\[otlp\]'"):
        otlp_export_of(load_configuration(conf), said.append, has_batches=True)
    # the variable may be there for other programs
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    assert otlp_export_of(load_configuration(None), said.append, has_batches=True) is None
    assert said == ["otlp: OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported without the extra `otlp`"]
