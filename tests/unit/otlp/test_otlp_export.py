"""The export of a process to receivers over sockets: values equal to `/metrics`, batches as traces, and what is dropped."""

import math
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from eventually import eventually
from lag_tables import SAMPLED_AT, group_row, lag_row, write_tables
from metrics_text import series
from otlp_receiver import Received, attributes, grpc_receiver, http_receiver, points
from patience import PATIENCE_SECONDS

from pipelines.metrics.settings import FAMILIES, metrics_settings
from pipelines.metrics.site import Site
from pipelines.otlp.export import otlp_export
from pipelines.otlp.settings import OtlpSettings, otlp_settings
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.phases import Phases

Receiver = Callable[[], AbstractContextManager[Received]]
RECEIVERS = pytest.mark.parametrize(
    ("receiver", "protocol"), [(http_receiver, "http/protobuf"), (grpc_receiver, "grpc")], ids=("http", "grpc")
)
SECRET = "Bearer 5ecret"
#: No server listens there.
NOWHERE = "http://127.0.0.1:1"


def settings_of(address: str, protocol: str = "http/protobuf", **environment: str) -> OtlpSettings:
    section = {"endpoint": address, "protocol": protocol, "interval_seconds": 3_600, "headers": {"Authorization": SECRET}}
    found = otlp_settings(section, environment)
    assert found is not None
    return found


def site_of(*roots: Path) -> Site:
    settings = metrics_settings({**load_configuration(None).metrics, "families": list(FAMILIES)})
    return Site({root.name: str(root) for root in roots}, settings, 1, print, clock=lambda: SAMPLED_AT)


def filled(root: Path, groups: int = 3) -> Path:
    owner = {"consumer_id": "m1", "member_host": "/10.0.0.1", "client_id": 'w"1\\\n'}
    names = ("billing", "", *(f"group {number}" for number in range(groups)))
    write_tables(
        str(root),
        groups=[group_row(name, 2) for name in names],
        lag=[
            *(lag_row(name, "orders", 0, 90, 100, lag_seconds=75.25, lag_seconds_low=60.0, **owner) for name in names),
            lag_row("odd", "orders", 1, None, 100, lag_method="none", lag_reason="no_commit"),
            lag_row("odd", "orders", 3, 10, 1 << 60, lag_seconds=math.nan, lag_seconds_low=math.inf),
        ],
    )
    return root


@pytest.fixture(autouse=True)
def _patient_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last export has the time that a busy machine needs."""
    monkeypatch.setattr("pipelines.otlp.export._END_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters that give up after a fraction of a second."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")


@RECEIVERS
def test_every_number_equals_the_text_of_the_same_snapshot(receiver: Receiver, protocol: str, tmp_path: Path) -> None:
    site = site_of(filled(tmp_path / "east"), filled(tmp_path / "west", 700))
    said: list[str] = []
    with receiver() as received:
        with otlp_export(site, settings_of(received.address, protocol), said.append, has_batches=False):
            pass
        text = series(site.metrics().text)
    found, resources = points(received.metrics)
    assert found == text
    # the snapshot is above the bound of a request
    assert len(received.metrics) > 2
    assert {each["service.name"] for each in resources} == {"grouplake"}
    assert len({each["service.instance.id"] for each in resources}) == 1
    assert [each.get("cluster_name") for each in resources][:2] == [None, "east"]
    assert {each.get("cluster_name") for each in resources} == {None, "east", "west"}
    assert {each["authorization"] for each in received.headers} == {SECRET}
    assert said == [f"otlp: metrics to {received.address}, every 3600 s"]


@RECEIVERS
def test_a_batch_is_a_trace_with_a_span_per_phase(receiver: Receiver, protocol: str, tmp_path: Path) -> None:
    site = site_of(tmp_path / "east")
    with receiver() as received, otlp_export(site, settings_of(received.address, protocol), print, has_batches=True):
        filled(tmp_path / "east")
        failed = Phases(datetime.now(UTC))
        with failed.timed("read"):
            pass
        with pytest.raises(OSError, match="disk"), failed.timed("write_offsets", rows=7):
            raise OSError("the disk\nis full")
        # as a phase of a batch that has failed already
        failed.failed(ValueError("another"))
    spans = received.spans()
    roots = {attributes(span.attributes).get("grouplake.batch_id"): span for span in spans if span.name == "batch"}
    assert attributes(roots[0].attributes) == {
        "grouplake.batch_id": 0,
        "grouplake.records_read": 12,
        "grouplake.records_kept": 5,
    }
    assert len({span.trace_id for span in spans}) == len(roots) == 2
    children = {span.name: span for span in spans if span.parent_span_id == roots[None].span_id}
    assert list(children) == ["read", "write_offsets"]
    write = children["write_offsets"]
    assert attributes(write.attributes) == {"grouplake.rows": 7}
    for span in (write, roots[None]):
        assert (span.status.code, span.status.message) == (2, "the disk is full")
        assert attributes(span.events[0].attributes) == {"exception.type": "OSError", "exception.message": "the disk is full"}
    assert children["read"].status.code == 0
    resource = attributes(received.traces[0].resource_spans[0].resource.attributes)
    assert (resource["service.name"], resource["cluster_name"]) == ("grouplake", "east")
    for span in spans:
        assert roots[None].start_time_unix_nano <= span.end_time_unix_nano or span.trace_id != roots[None].trace_id


def test_batches_do_not_wait_for_a_collector_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a batch that waited for the exporter would wait for ten minutes, and so would the end of the process
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
    monkeypatch.setattr("pipelines.otlp.export._END_SECONDS", 0.1)
    site, said = site_of(filled(tmp_path / "east")), list[str]()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = OtlpSettings(settings_of(address).signals, 0.01, "")
        with otlp_export(site, settings, said.append, has_batches=True):
            held, _ = silent.accept()
            for batch_id in range(1_500):
                phases = Phases(SAMPLED_AT)
                with phases.timed("plan"):
                    pass
                phases.finished(batch_id, 2, 3)
            assert b"POST /v1/metrics" in held.recv(1_000)
    # no more requests, so that the thread ends
    held.close()
    eventually("the end of the thread", threading.enumerate, lambda found: all(each.name != "otlp" for each in found))
    # those above the bound of spans that wait, and the others at the end
    assert series(site.metrics().text)["grouplake_otlp_dropped_spans"] == {(): 3_000}


@pytest.mark.usefixtures("quick_retries")
def test_what_is_dropped_is_counted_and_said_once(tmp_path: Path) -> None:
    site, said = site_of(filled(tmp_path / "east")), list[str]()
    with http_receiver() as received:
        received.is_refusing = True
        settings = OtlpSettings(settings_of(received.address).signals, 0.02, "")
        with otlp_export(site, settings, said.append, has_batches=True):
            write_tables(str(tmp_path / "east"))
            eventually("three refused requests", lambda: len(received.headers), lambda count: count >= 3)
            dropped = eventually(
                "spans that were dropped",
                lambda: {name: dict(series(site.metrics().text)[name])[()] for name in DROPPED},
                lambda found: min(found.values()) > 0,
            )
            assert dropped["grouplake_otlp_dropped_spans"] == 1
            received.is_refusing = False
            eventually("metrics that were taken", lambda: received.metrics, bool)
            write_tables(str(tmp_path / "east"))
            eventually("spans that were taken", lambda: received.traces, bool)
            at_last = {name: int(dict(series(site.metrics().text)[name])[()]) for name in DROPPED}
    begins = [f"otlp: {received.address} does not take {noun} (HTTP 401): they are dropped until it does" for noun in NOUNS]
    assert said[:1] == [f"otlp: metrics and traces to {received.address}, every 0.02 s"]
    assert sorted(line for line in said if "does not take" in line) == sorted(begins)
    ends = [line for line in said if " again, after " in line]
    assert sorted(line.rpartition(": ")[2] for line in ends) == sorted(
        f"{at_last[name]:,} {noun} were dropped" for name, noun in zip(DROPPED, NOUNS, strict=True)
    )
    assert len(said) == 5
    assert SECRET not in "".join(said)


@RECEIVERS
def test_what_is_rejected_of_a_request_is_counted_and_said_once(receiver: Receiver, protocol: str, tmp_path: Path) -> None:
    site, said = site_of(filled(tmp_path / "east")), list[str]()

    def dropped() -> list[int]:
        return [int(dict(series(site.metrics().text)[name])[()]) for name in DROPPED]

    with receiver() as received:
        received.rejected = 2
        settings = OtlpSettings(settings_of(received.address, protocol).signals, 0.02, "")
        with otlp_export(site, settings, said.append, has_batches=True):
            write_tables(str(tmp_path / "east"))
            rejecting = eventually("points of three passes, and spans", dropped, lambda found: found[0] >= 6 and found[1] == 2)
            received.rejected = 0
            write_tables(str(tmp_path / "east"))
            eventually(
                "passes without rejections", lambda: [line for line in said if "any more" in line], lambda found: len(found) == 2
            )
        points_dropped, spans_dropped = dropped()
    assert points_dropped >= rejecting[0]
    assert said[1:3] == [f"otlp: {received.address} rejects some {noun}: they are dropped until it takes all" for noun in NOUNS]
    ends = sorted(said[3:])
    assert [line.partition(", after ")[0] for line in ends] == [
        f"otlp: {received.address} rejects no {noun} any more" for noun in NOUNS
    ]
    assert [line.rpartition(": ")[2] for line in ends] == [f"{count:,} were dropped" for count in (points_dropped, spans_dropped)]


DROPPED = ("grouplake_otlp_dropped_points", "grouplake_otlp_dropped_spans")
NOUNS = ("data points", "spans")


@pytest.mark.parametrize(("protocol", "seconds"), [("http/protobuf", "2"), ("grpc", "0.3")], ids=("http", "grpc"))
def test_a_run_that_ends_counts_what_nobody_took(
    protocol: str, seconds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # the exporter of HTTP names the reason once it tries again, about a second later
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", seconds)
    said: list[str] = []
    site = site_of(tmp_path / "east")
    with otlp_export(site, settings_of(NOWHERE, protocol), said.append, has_batches=True):
        filled(tmp_path / "east")
    reason = "Connection refused" if protocol == "http/protobuf" else "UNAVAILABLE"
    assert said[1] == f"otlp: {NOWHERE} does not take data points ({reason}): they are dropped until it does"
    assert said[2] == f"otlp: {NOWHERE} does not take spans ({reason}): they are dropped until it does"
    count = sum(len(found) for found in series(site.metrics().text).values()) - len(DROPPED)
    assert said[3:] == [f"otlp: {NOWHERE} did not take {count + 2} data points", f"otlp: {NOWHERE} did not take 3 spans"]
    # nothing of the libraries, which would repeat with every attempt
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("quick_retries")
def test_the_page_exports_no_traces_and_nothing_without_metrics(tmp_path: Path) -> None:
    said: list[str] = []
    none = settings_of(NOWHERE, OTEL_METRICS_EXPORTER="none")
    with otlp_export(site_of(filled(tmp_path / "east")), none, said.append, has_batches=False):
        pass
    assert said == []
