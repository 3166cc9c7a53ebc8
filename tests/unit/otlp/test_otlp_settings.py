"""The section `[otlp]` and the variables of OpenTelemetry: which comes first, what is invalid, and what is never shown."""

from typing import Any

import pytest

from pipelines.otlp.settings import OtlpProtocol, OtlpSettings, Signal, otlp_settings
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def settings(environment: dict[str, str] | None = None, **section: Any) -> OtlpSettings | None:
    return otlp_settings({**load_configuration(None).otlp, **section}, environment or {})


def signals(found: OtlpSettings | None) -> dict[Signal, tuple[OtlpProtocol, str | None, str]]:
    assert found is not None
    return {each.signal: (each.protocol, each.endpoint, each.shown) for each in found.signals}


def test_nothing_is_exported_without_a_collector() -> None:
    assert settings() is None
    assert settings({ENDPOINT: ""}) is None
    assert settings({ENDPOINT: "http://a:4318", "OTEL_SDK_DISABLED": "TRUE"}) is None
    none = {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}
    assert settings(none, endpoint="http://a:4318") is None


def test_an_endpoint_of_the_section_comes_before_the_variables() -> None:
    found = settings({ENDPOINT: "http://b:4317", "OTEL_METRIC_EXPORT_INTERVAL": "5000"}, endpoint="https://a:4318/base/")
    assert signals(found) == {
        Signal.METRICS: (OtlpProtocol.HTTP, "https://a:4318/base/v1/metrics", "https://a:4318"),
        Signal.TRACES: (OtlpProtocol.HTTP, "https://a:4318/base/v1/traces", "https://a:4318"),
    }
    assert found is not None
    assert found.interval_seconds == 5
    grpc = settings(endpoint="http://a:4317", protocol="grpc", interval_seconds=10)
    assert signals(grpc)[Signal.METRICS] == (OtlpProtocol.GRPC, "http://a:4317", "http://a:4317")
    assert grpc is not None
    assert grpc.interval_seconds == 10


def test_variables_of_one_signal_come_before_those_of_all() -> None:
    variables = {
        ENDPOINT: "http://all:4318/t0ken",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "traces:4317",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
    }
    found = settings(variables)
    # the exporters read these addresses themselves
    assert signals(found) == {
        Signal.METRICS: (OtlpProtocol.HTTP, None, "http://all:4318"),
        Signal.TRACES: (OtlpProtocol.GRPC, None, "traces:4317"),
    }
    assert found is not None
    assert found.interval_seconds == 60
    only_traces = settings({**variables, "OTEL_METRICS_EXPORTER": "none"})
    assert list(signals(only_traces)) == [Signal.TRACES]


@pytest.mark.parametrize(
    ("environment", "section", "message"),
    [
        ({}, {"endpoint": "collector:4318"}, "otlp.endpoint is not an address with http:// or https:// and a host"),
        ({}, {"endpoint": "http://a:port"}, "otlp.endpoint is not an address: use http://HOST:PORT"),
        ({}, {"endpoint": "http://me:5ecret@a"}, "otlp.endpoint has a user or a password: put"),
        ({ENDPOINT: "http://me:5ecret@a"}, {}, f"{ENDPOINT} has a user or a password: put"),
        (
            {},
            {"endpoint": "http://a", "protocol": "http/json"},
            "otlp.protocol is 'http/json': must be one of grpc, http/protobuf",
        ),
        ({ENDPOINT: "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "x"}, {}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'x': must be one of"),
        (
            {ENDPOINT: "http://a", "OTEL_METRIC_EXPORT_INTERVAL": "1m"},
            {},
            "OTEL_METRIC_EXPORT_INTERVAL is '1m': must be a number",
        ),
        ({}, {"headers": {"a b": "5ecret"}}, "otlp.headers has 'a b': not a name of a header"),
        ({}, {"headers": {"a": "5ecret\r\nx: y"}}, "otlp.headers.a must be a printable string"),
        ({}, {"headers": {"a": 1}}, "otlp.headers.a must be a printable string"),
    ],
)
def test_invalid_values_of_the_export(environment: dict[str, str], section: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        settings(environment, **section)
    assert str(raised.value).startswith(message)
    assert "5ecret" not in str(raised.value)


def test_secrets_are_in_no_representation() -> None:
    found = settings(endpoint="https://a:4318/t0ken", headers={"Authorization": "5ecret"})
    assert found is not None
    assert found.signals[0].headers == {"authorization": "5ecret"}
    assert "5ecret" not in repr(found)
    assert "t0ken" not in repr(found)
