"""The text of /metrics by Prometheus' own parsers: the text format 0.0.4, OpenMetrics 1.0, and which of them a client gets."""

import gzip
import math
import re
from pathlib import Path

import pytest
from lag_tables import SAMPLED_AT, group_row, lag_row, write_tables
from metrics_text import series
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from pipelines.metrics.catalogue import METRICS
from pipelines.metrics.http_answer import CONTENT_TYPE, metrics_answer, openmetrics_version
from pipelines.metrics.metrics_text import MetricsBody
from pipelines.metrics.settings import FAMILIES, metrics_settings
from pipelines.metrics.site import Site
from pipelines.runtime.configuration import load_configuration

#: What a label has to escape, what ends a line elsewhere, what looks like a label, and what is no ASCII.
HOSTILE = ['a"b', "a\\b", "a\nb", 'a\\"b\\n', 'a"} 1\nb{c="', "a\rb\x85c\u2028d", "a\x00b\x1b[2J", "🚀\u202e", "# EOF", " a ", ""]
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> MetricsBody:
    """All families, for groups, topics and clients with hostile names."""
    root = str(tmp_path_factory.mktemp("tables") / "east")
    owner = [{"consumer_id": name, "member_host": name, "client_id": name} for name in HOSTILE]
    values = {"lag_seconds": 1e-7, "lag_seconds_low": 1e22, "stuck_seconds": math.inf, "retention_margin_seconds": math.nan}
    write_tables(
        root,
        groups=[group_row(name, 1, protocol_type=name, protocol=name) for name in HOSTILE],
        lag=[lag_row(name, name, number, 1, 5, **owner[number], **values) for number, name in enumerate(HOSTILE)],
    )
    settings = metrics_settings({**load_configuration(None).metrics, "families": list(FAMILIES)})
    site = Site({'ea"st\\\n': root, "west": str(Path(root).parent / "absent")}, settings, 1, print, clock=lambda: SAMPLED_AT)
    site.refresh()
    return site.metrics()


def test_both_parsers_read_the_same_series(body: MetricsBody) -> None:
    text, openmetrics = body.text.decode(), body.openmetrics.text.decode()
    assert openmetrics == text + "# EOF\n"
    plain = {family.name: family for family in plain_families(text)}
    open_ = {family.name: family for family in openmetrics_families(openmetrics)}  # type: ignore[no-untyped-call]  # it has no types
    assert plain.keys() == open_.keys()
    for name, family in plain.items():
        assert (family.type, open_[name].type) == ("gauge", "gauge")
        assert family.documentation == open_[name].documentation
        # NaN equals nothing, its text does
        found = [(sample.name, sample.labels, repr(float(sample.value))) for sample in family.samples]
        assert found == [(sample.name, sample.labels, repr(float(sample.value))) for sample in open_[name].samples]
    # no series twice, no name with two headers
    assert series(body.text).keys() == plain.keys()
    groups = {labels["consumergroup"] for _, labels, *_ in plain["kafka_consumergroup_lag"].samples}
    assert groups == set(HOSTILE)
    assert {labels["cluster_name"] for _, labels, *_ in plain["grouplake_tables_up"].samples} == {'ea"st\\\n', "west"}


def test_names_and_help_need_no_escapes() -> None:
    """A backslash and a line end would need one in both formats, a quotation mark in OpenMetrics."""
    for metric in METRICS:
        assert not set(metric.help) & set('\\\n"'), metric.name
        assert re.fullmatch("[a-z_:][a-z0-9_:]*", metric.name)
        assert all(re.fullmatch("[a-z][a-z0-9_]*", label) for label in metric.labels), metric.name


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (PROMETHEUS, "1.0.0"),
        ("application/openmetrics-text", "1.0.0"),
        ("application/openmetrics-text; version=0.0.1", "0.0.1"),
        ("Application/OpenMetrics-Text;Version=1.0.0", "1.0.0"),
        ("application/openmetrics-text;version=2.0.0", None),
        ("application/openmetrics-text;q=0", None),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.5", None),
        ("application/openmetrics-text;q=nan,*/*", None),
        ("application/openmetrics-text;q=1e999", None),
        ("text/plain", None),
        ("*/*", None),
        ("", None),
        (";;,,=;q", None),
    ],
)
def test_the_format_that_a_client_prefers(accept: str, version: str | None, body: MetricsBody) -> None:
    assert openmetrics_version(accept) == version
    expected = body if version is None else body.openmetrics
    for encoding in ("", "gzip"):
        answer = metrics_answer(body, "", encoding, accept)
        kind = CONTENT_TYPE if version is None else f"application/openmetrics-text; version={version}; charset=utf-8"
        assert answer.headers["Content-Type"] == kind
        assert (gzip.decompress(answer.content) if encoding else answer.content) == expected.text
        assert answer.headers["Vary"] == "Accept, Accept-Encoding"
        assert metrics_answer(body, answer.headers["ETag"], encoding, accept).code == 304


def test_an_entity_tag_is_of_one_format(body: MetricsBody) -> None:
    plain = metrics_answer(body, "", "")
    assert metrics_answer(body, plain.headers["ETag"], "", PROMETHEUS).code == 200
