"""`grouplake doctor --migrate-from`: files of other lag monitors, and hostile ones."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import main
from pipelines.doctor.migration import migration_report
from pipelines.doctor.migration.group_expressions import found_anywhere, found_at_start, glob
from pipelines.doctor.migration.hocon import HoconError, parse_hocon
from pipelines.doctor.migration.migrate import PEERS, migration_of
from pipelines.doctor.migration.peer_file import MAX_BYTES
from pipelines.runtime.configuration import Configuration, load_configuration
from pipelines.source.address import parse_address
from pipelines.source.name_patterns import NamePatterns

DATA = Path(__file__).parents[2] / "data" / "migration"
_ENVIRONMENT = {
    name: f"of {name}"
    for name in ("KAFKA_SASL_PASSWORD", "KAFKA_SSL_PASSWORD", "KAFKA_USER", "KAFKA_PASSWORD", "KAFKA_SASL_USERNAME")
}
#: Source and settings of each cluster of a file.
EXPECTED: dict[str, list[tuple[str, dict[str, dict[str, Any]]]]] = {
    "burrow.toml": [
        (
            "kafka://east1:9093,east2:9093",
            {
                "lag": {"interval_seconds": 15},
                "kafka": {
                    "client_id": "burrow-prod",
                    "ssl_cafile": "/etc/ssl/corp.pem",
                    "sasl_mechanism": "SCRAM-SHA-512",
                    "sasl_username": "burrow",
                    "sasl_password": "env:KAFKA_SASL_PASSWORD",
                    "security_protocol": "SASL_SSL",
                },
                "metrics": {"families": ["burrow"]},
                "status": {"window_commits": 12, "min_distance_ms": 2_000, "allowed_lag": 5, "minimum_complete": 0.5},
                "dashboard": {"listen": "127.0.0.1:8000"},
            },
        ),
        (
            "kafka://west1:9092",
            {
                "metrics": {"families": ["burrow"]},
                "status": {"window_commits": 12, "min_distance_ms": 2_000, "allowed_lag": 5, "minimum_complete": 0.5},
            },
        ),
    ],
    "kminion.yaml": [
        (
            "kafka-groups://b1:9093,b2:9093",
            {
                "kafka": {
                    "client_id": "kminion-prod",
                    "ssl_cafile": "/etc/ssl/ca.pem",
                    "ssl_certfile": "/etc/ssl/client.pem",
                    "ssl_keyfile": "/etc/ssl/client.key",
                    "ssl_password": "env:KAFKA_SSL_PASSWORD",
                    "sasl_mechanism": "SCRAM-SHA-256",
                    "sasl_username": "kminion",
                    "sasl_password": "env:KAFKA_SASL_PASSWORD",
                    "security_protocol": "SASL_SSL",
                },
                "groups": {"include": ["team-.*", "billing"], "exclude": [".*-canary"]},
                "metrics": {"granularity": "topic", "families": ["kminion"]},
                "dashboard": {"listen": "127.0.0.1:8090"},
            },
        )
    ],
    "kafka-lag-exporter.conf": [
        (
            "kafka-groups://k1:9093,k2:9093",
            {
                "groups": {"include": ["^shop-.+", "billing"], "exclude": ["shop-test"]},
                "kafka": {
                    "security_protocol": "SASL_SSL",
                    "sasl_mechanism": "SCRAM-SHA-512",
                    "client_id": "lag-admin",
                    "sasl_username": "lag",
                    "sasl_password": "env:KAFKA_SASL_PASSWORD",
                    "ssl_check_hostname": False,
                },
                "metrics": {"families": ["kafka-lag-exporter"]},
                "lag": {"interval_seconds": 45},
                "job": {"poll_seconds": 45},
                "dashboard": {"listen": "127.0.0.1:8001"},
            },
        ),
        (
            "kafka-groups://lab:9092",
            {
                "metrics": {"families": ["kafka-lag-exporter"]},
                "lag": {"interval_seconds": 45},
                "job": {"poll_seconds": 45},
            },
        ),
    ],
    "klag-exporter.toml": [
        (
            "kafka-groups://kafka1:9092,kafka2:9092",
            {
                "groups": {"include": ["prod-.*", ".*(?:billing|orders).*"], "exclude": [".*canary.*"]},
                "kafka": {
                    "security_protocol": "SASL_SSL",
                    "sasl_mechanism": "PLAIN",
                    "sasl_username": "env:KAFKA_USER",
                    "ssl_cafile": "/etc/ssl/ca.pem",
                    "sasl_password": "env:KAFKA_PASSWORD",
                },
                "metrics": {"families": ["kafka-lag-exporter"], "stale_seconds": 180, "granularity": "partition"},
                "lag": {"interval_seconds": 20},
                "job": {"poll_seconds": 20},
                "dashboard": {"listen": "127.0.0.1:8002"},
            },
        )
    ],
    "klag.properties": [
        (
            "kafka-groups://cloud.example.com:9092",
            {
                "lag": {"interval_seconds": 60},
                "job": {"poll_seconds": 60},
                "groups": {"include": ["ingest.*", "categorize\\.."], "exclude": ["debug\\-.*"]},
                "kafka": {
                    "security_protocol": "SASL_SSL",
                    "sasl_mechanism": "PLAIN",
                    "sasl_username": "key-1",
                    "sasl_password": "env:KAFKA_SASL_PASSWORD",
                    "request_timeout_ms": 20_000,
                },
                "metrics": {"member_labels": False},
                "dashboard": {"mcp": True, "listen": "127.0.0.1:8888"},
            },
        )
    ],
    "datadog.yaml": [
        (
            "kafka-groups://d1:9093,d2:9093",
            {
                "lag": {"interval_seconds": 15},
                "job": {"poll_seconds": 15},
                "groups": {"include": ["billing", "team\\.a", "(?:my_cons.+).*"]},
                "kafka": {
                    "security_protocol": "SASL_SSL",
                    "sasl_mechanism": "PLAIN",
                    "sasl_username": "dd",
                    "sasl_password": "env:KAFKA_SASL_PASSWORD",
                    "ssl_cafile": "/etc/ssl/ca.pem",
                    "ssl_check_hostname": False,
                    "request_timeout_ms": 7_000,
                },
            },
        ),
        ("kafka-groups://other:9092", {"kafka": {"request_timeout_ms": 7_000}}),
    ],
}


def loaded(text: str, tmp_path: Path) -> Configuration:
    """The configuration as the job loads it."""
    path = tmp_path / "printed.toml"
    path.write_text(text, encoding="utf-8")
    return load_configuration(str(path), _ENVIRONMENT)


def remarks_of(text: str, suffix: str, tmp_path: Path) -> dict[str, str]:
    """Reasons by key, of a file with this text."""
    path = tmp_path / f"theirs{suffix}"
    path.write_text(text, encoding="utf-8")
    return {remark.key: remark.reason for remark in migration_of(str(path)).keys.remarks}


def test_there_is_a_file_of_each_program() -> None:
    assert len(EXPECTED) == len(PEERS)
    assert {path.name for path in DATA.iterdir()} == {*EXPECTED, "README.md"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_becomes_a_configuration_that_the_job_accepts(name: str, tmp_path: Path) -> None:
    clusters = migration_of(str(DATA / name)).clusters
    assert [(cluster.source, cluster.sections) for cluster in clusters] == EXPECTED[name]
    for cluster in clusters:
        text = migration_report.configuration(cluster)
        assert tomllib.loads(text) == cluster.sections
        configuration = loaded(text, tmp_path)
        address = parse_address(cluster.source)
        NamePatterns.of("groups", configuration.groups)
        assert address.is_polled or not configuration.groups["include"], "kafka:// refuses [groups]"
        for section, values in cluster.sections.items():
            for key, value in values.items():
                expected = _ENVIRONMENT[value[4:]] if isinstance(value, str) and value.startswith("env:") else value
                assert getattr(configuration, section)[key] == expected


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_not_printed(name: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "hunter2" in (DATA / name).read_text(encoding="utf-8")
    assert main(["doctor", "--migrate-from", str(DATA / name), "--format", form]) == 0
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err
    if form == "json":
        rows = [json.loads(line) for line in out.splitlines()]
        assert [row["source"] for row in rows] == [source for source, _ in EXPECTED[name]]
        assert all(command.startswith("grouplake ") for row in rows for command in row["commands"])


@pytest.mark.parametrize("name", [name for name, clusters in EXPECTED.items() if len(clusters) == 1])
def test_the_output_for_one_cluster_is_a_configuration(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["doctor", "--migrate-from", str(DATA / name)])
    loaded(capsys.readouterr().out, tmp_path)


def test_keys_without_counterpart_are_named_with_the_reason() -> None:
    remarks = {remark.key: remark.reason for remark in migration_of(str(DATA / "burrow.toml")).keys.remarks}
    assert "grouplake alerts" in remarks["notifier.chat.extras.api_key"]
    assert remarks["plugin.unheard-of.switch"] == "not a key that this command knows"
    assert "HTTP" not in remarks["consumer.east.group-denylist"]
    assert {key.split(".")[0] for key in remarks} >= {"general", "notifier", "storage", "evaluator", "tls", "client-profile"}


@pytest.mark.parametrize("name", EXPECTED)
def test_no_other_key_of_the_examples_is_unknown(name: str) -> None:
    remarks = migration_of(str(DATA / name)).keys.remarks
    unknown = [remark.key for remark in remarks if "not a key" in remark.reason or "another form" in remark.reason]
    assert unknown == (["plugin.unheard-of.switch"] if name == "burrow.toml" else [])


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        (".toml", b"[job]\nera = '4'\n", "no keys of a known program: kafka-lag-exporter (HOCON), "),
        (".yaml", b"services:\n  web: {}\n", "no keys of a known program"),
        ("", b"nothing of this kind", "cannot read"),
        (".toml", b"", "it has no keys"),
        (".toml", b"a = ", "cannot read"),
        (".yaml", b"kafka: [", "not YAML: line 1"),
        (".yaml", b"kafka:\n  brokers: \xff\xfe\n", "utf-8"),
        (".yaml", b"#" * (MAX_BYTES + 1), f"more than {MAX_BYTES:,} bytes"),
        (".yaml", b"a: &a [x, x]\nb: &b [*a, *a]\nkafka: {brokers: [*b]}\n", "YAML aliases"),
        (".yaml", b"kafka: {brokers: !!python/object/apply:os.getcwd []}\n", "not YAML"),
        (".yaml", b"kafka: " + b"[" * 20_000, "nested too deeply"),
        (".toml", b"[cluster" + b".a" * 60 + b"]\n" + b"a." * 60 + b"a = 1\n[cluster.x]\nservers = []\n", "nested more than"),
        (".toml", b"cluster." + b"a." * (MAX_BYTES // 2 - 10) + b"a = 1\n", "a key has more than 100 parts"),
        (".toml", b" [[ cluster ." + b' \'a.b\' . "a\\"" .' * 50 + b"a ]]\n", "a key has more than 100 parts"),
        (".conf", b'kafka-lag-exporter { include "/etc/passwd" }\n', "include"),
        (".conf", b"kafka-lag-exporter { clusters " + b"{a " * 5_000, "nested more than"),
        (".conf", b"kafka-lag-exporter { clusters = [] }\n", "has 0 clusters"),
        (".yaml", b"kafka: {brokers: 2026-01-01}\n9: {1: 2}\n", ""),
    ],
)
def test_other_files_end_with_one_line(
    suffix: str, content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"theirs{suffix}"
    path.write_bytes(content)
    code = main(["doctor", "--migrate-from", str(path)])
    out, err = capsys.readouterr()
    assert (code, out == "", len(err.splitlines())) == ((2, True, 1) if message else (0, False, 0))
    assert message in err


def test_names_of_the_file_cannot_leave_their_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters, quotes and shell syntax of a file stay text, and no variable of the environment is read for it."""
    path = tmp_path / "theirs.toml"
    path.write_text(
        "[[clusters]]\n"
        r'name = "x\n[job]\nera = \"0.9\"\u001b[2J"' + "\n"
        r'bootstrap_servers = "a:1,$(touch gone):9092,b:2\n[spark]"' + "\n"
        r"group_whitelist = ['a\"b\u202e', '(unclosed']" + "\n"
        "[clusters.consumer_properties]\n"
        "'client.id' = 'env:HOME'\n"
        "'sasl.username' = 'x${HOME}y'\n"
        '[clusters."odd\\nkey\\u001b[2J"]\n'
        "x = 1\n",
        encoding="utf-8",
    )
    assert main(["doctor", "--migrate-from", str(path)]) == 0
    out = capsys.readouterr().out
    assert set(tomllib.loads(out)) == {"groups", "metrics"}
    assert "\x1b" not in out
    assert "kafka-groups://a:1 " in out
    assert loaded(out, tmp_path).job["era"] == "4"
    reasons = {remark.key: remark.reason for remark in migration_of(str(path)).keys.remarks}
    assert "regular expression" in reasons["clusters[0].group_whitelist"]
    assert "meaning here" in reasons["clusters[0].consumer_properties.client.id"]
    assert "within a text" in reasons["clusters[0].consumer_properties.sasl.username"]


def test_a_server_without_port_is_left_to_the_reader(tmp_path: Path) -> None:
    remarks = remarks_of("kafka:\n  brokers: [broker]\n", ".yaml", tmp_path)
    assert "BROKER:9092" in remarks["kafka.brokers"]
    assert migration_of(str(tmp_path / "theirs.yaml")).clusters[0].source == "kafka-groups://BROKER:9092"


def test_kminion_that_reads_the_topic_becomes_a_source_with_the_log(tmp_path: Path) -> None:
    text = "kafka: {brokers: ['b:9092']}\nminion: {consumerGroups: {scrapeMode: offsetsTopic, allowedGroups: ['/a/']}}\n"
    assert "the log has all groups" in remarks_of(text, ".yaml", tmp_path)["minion.consumerGroups.allowedGroups"]
    [cluster] = migration_of(str(tmp_path / "theirs.yaml")).clusters
    assert cluster.source == "kafka://b:9092"
    assert "groups" not in cluster.sections


@pytest.mark.parametrize("expression", ["^team-", "-canary$", "a|b", "^a|b$", "x", "^x$", r"a\$", "", ".*", "^", "$", "a.c"])
def test_expressions_for_a_part_of_a_name_select_the_same_groups(expression: str) -> None:
    every = expression in ("", ".*")
    for name in ("team-a", "a-canary", "a", "b", "xx", "x", "a$", "ab", "", "a\nb", "abc", "zabcz"):
        found = re.fullmatch(found_anywhere(expression), name, re.DOTALL) is not None
        assert (found or every) == (re.search(expression, name) is not None), name
        at_start = re.fullmatch(found_at_start(expression), name, re.DOTALL) is not None
        assert (at_start or every) == (re.match(expression, name) is not None), name


def test_globs_select_the_same_groups() -> None:
    assert re.fullmatch(glob("in.*-?"), "in.gest-1")
    assert not re.fullmatch(glob("in.*-?"), "inxgest-1")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('a { b = 1, c: "x y" }', {"a": {"b": "1", "c": "x y"}}),
        ("a.b = 1\na.c = 2", {"a": {"b": "1", "c": "2"}}),
        ("{ a = [1, 2\n 3,] }", {"a": ["1", "2", "3"]}),
        ("a = 30 seconds # time\n// none\nb = x//y", {"a": "30 seconds", "b": "x"}),
        ("a = 8\na = ${?PORT}", {"a": "8"}),
        ("a = ${?PORT}", {"a": "${?PORT}"}),
        ('a = """x\n"y" """', {"a": 'x\n"y" '}),
        (r'a = "q\"\u0041\n"', {"a": 'q"A\n'}),
        ("a { b = 1 }\na { c = 2 }", {"a": {"b": "1", "c": "2"}}),
        ("a = [{x = 1}\n{x = 2}]", {"a": [{"x": "1"}, {"x": "2"}]}),
        ('"a.b" = 1', {"a.b": "1"}),
        ("a = host:9092", {"a": "host:9092"}),
        ("", {}),
    ],
)
def test_hocon(text: str, tree: dict[str, Any]) -> None:
    assert parse_hocon(text) == tree


@pytest.mark.parametrize(
    "text", ["a", "a = ", "a = [1", "a { b = 1", "= 1", "a = {}}", 'a = "x', "a += 1", "include x", "a b = 1", "a..b = 1"]
)
def test_other_text_is_not_hocon(text: str) -> None:
    with pytest.raises(HoconError):
        parse_hocon(text)
