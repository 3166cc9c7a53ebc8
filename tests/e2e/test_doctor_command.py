"""`grouplake doctor` without a broker: each problem of machine, tables, log, certificates and interfaces, caused."""

import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from doctor_findings import Doctor
from log_builder import Log, member
from segment_builder import LogBuilder
from server_certificates import self_made_certificate
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.doctor import clocks, machine, tables
from pipelines.doctor.certificate_expiry import expiry_of, expiry_of_file
from pipelines.doctor.checks import CHECKS
from pipelines.doctor.finding import Severity
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.runtime import timestamps
from pipelines.tables.layout import LAYOUT, PROPERTY
from pipelines.tables.store import TableStore
from pipelines.tables.writer_lock import FILE, writer_lock

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def doctor(capsys: Captured) -> Doctor:
    return Doctor(capsys)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a server."""
    reserved = PortReservation()
    yield reserved.port
    reserved.release()


def small_tables(root: Path) -> TableStore:
    log = Log(partition=0)
    log.commit(0, 5, group="g")
    log.group([member()], group="g")
    return applied(log, Era.named("4"), [1], str(root))


def conf(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "job.toml"
    file.write_text(text)
    return ["--conf", str(file)]


def test_a_sound_machine_and_sound_tables(doctor: Doctor, tmp_path: Path) -> None:
    small_tables(tmp_path / "tables")
    found = doctor.examine("--tables", str(tmp_path / "tables"))
    assert found.code == 0
    assert found.marks("tables") == dict.fromkeys(
        ("folder", "layout", "features", "writer", "last batch", "quarantine", "clock"), "ok"
    )
    assert found.of("tables", "layout") == [("ok", f"layout {LAYOUT}, era 4")]
    assert found.of("tables", "quarantine") == [("ok", "quarantine is empty")]
    ((_, last),) = found.of("tables", "last batch")
    assert last.startswith("the last batch is 1, finished ")
    # nothing of the doctor stays in the folder
    assert not list((tmp_path / "tables").glob("_doctor-*"))


def test_text_names_remedies_and_what_was_left_out(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").touch()
    assert main(["doctor", "--tables", str(tmp_path / "file")]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"  problem  {tmp_path / 'file'} is a file")
    assert lines[at + 1] == "           → name a folder with --tables"
    assert lines[-4].startswith("not checked without --source: bootstrap servers, ")
    assert lines[-3] == "not checked without --rules: alert rules, certificates"
    assert lines[-2] == "not checked without --spark: session and executors"
    assert lines[-1].startswith("1 problem, ")
    # after a problem with the folder its tables are not looked for
    assert not any("last batch" in line for line in lines)


def test_every_check_is_described() -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text()
    rows = re.findall(r"^\| (\w+) \| ([^|]+?)( \*)? \| [^|]+ \|$", page.partition("\n## Checks\n")[2], re.MULTILINE)
    described = [(area, name, bool(star)) for area, name, star in rows if area != "area"]
    assert described == list(dict.fromkeys((check.area, check.name, check.stops_area) for check in CHECKS))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--conf", "nowhere.toml"],
        ["--source", "kafka:nowhere"],
        ["--era", "5"],
        ["--retention-minutes", "0"],
    ],
)
def test_bad_usage(arguments: list[str], capsys: Captured) -> None:
    assert main(["doctor", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15', ("ok", "Java 17.0.15 (")),
        ('openjdk version "21" 2023-09-19', ("ok", "Java 21 (")),
        ('java version "1.8.0_392"', ("problem", "Java 8.0_392 (")),
        ('openjdk version "11.0.2" 2019-01-15', ("problem", "Java 11.0.2 (")),
        ("no version here", ("warning", "")),
    ],
)
def test_versions_of_java(
    printed: str, expected: tuple[str, str], doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    ((mark, found),) = doctor.examine().of("machine", "Java")
    assert mark == expected[0]
    assert found.startswith(expected[1])


def test_no_java(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.examine().of("machine", "Java") == [("problem", "no `java` in JAVA_HOME or PATH")]


def test_jars_that_the_first_run_downloads(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path))
    ((mark, found),) = doctor.examine().of("machine", "jars")
    assert (mark, found) == ("warning", f"Delta's jars are not in {tmp_path / 'jars'}")
    provided = doctor.examine(*conf(tmp_path, '[spark]\ndelta_jars = "provided"\n'))
    assert provided.marks("machine")["jars"] == "ok"


@pytest.mark.parametrize(
    ("settings", "mark"),
    [
        ('driver_memory = "900g"', "warning"),
        ('driver_memory = "plenty"', "problem"),
        ('driver_memory = "512m"', "ok"),
        ('master = "spark://h:7077"', "ok"),
    ],
)
def test_memory(settings: str, mark: str, doctor: Doctor, tmp_path: Path) -> None:
    assert doctor.examine(*conf(tmp_path, f"[spark]\n{settings}\n")).marks("machine")["memory"] == mark


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(machine, "_LIMIT_FILES", (tmp_path / "missing", limit))
    limit.write_text("1073741824\n")
    assert machine.memory_bytes() == 2**30
    limit.write_text("max\n")
    assert machine.memory_bytes() > 2**30


def test_a_full_disk(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_FEW_BYTES", 2**62)
    assert doctor.examine("--tables", str(tmp_path)).marks("tables")["folder"] == "warning"
    monkeypatch.setattr(tables, "_LEAST_BYTES", 2**62)
    assert doctor.examine("--tables", str(tmp_path)).marks("tables")["folder"] == "problem"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission(doctor: Doctor, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert doctor.examine("--tables", str(tmp_path)).marks("tables")["folder"] == "problem"
    finally:
        tmp_path.chmod(0o700)


def test_the_writer_of_the_tables(doctor: Doctor, tmp_path: Path) -> None:
    small_tables(tmp_path)
    with writer_lock(str(tmp_path), "grouplake run"):
        ((mark, found),) = doctor.examine("--tables", str(tmp_path)).of("tables", "writer")
        assert mark == "ok"
        assert found.startswith(f"the tables are being written by `grouplake run` (pid {os.getpid()} on ")
        # a job that holds the lock keeps it
        assert (tmp_path / FILE).read_text().startswith("grouplake run\n")
    assert doctor.examine("--tables", str(tmp_path)).of("tables", "writer") == [("ok", "no process writes the tables")]
    (tmp_path / FILE).write_text("grouplake run\npid 1 on elsewhere, killed\n")
    assert doctor.examine("--tables", str(tmp_path)).of("tables", "writer") == [("ok", "no process writes the tables")]


def test_an_old_batch_and_another_era(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tables(tmp_path)
    monkeypatch.setattr(tables, "_OLD_BATCH", timedelta(seconds=-1))
    assert doctor.examine("--tables", str(tmp_path)).marks("tables")["last batch"] == "warning"
    found = doctor.examine("--tables", str(tmp_path), "--era", "3")
    assert found.of("tables", "layout") == [("problem", "the tables were made with era 4, not 3")]
    assert "last batch" not in found.marks("tables")


def test_tables_that_cannot_be_opened(doctor: Doctor, tmp_path: Path) -> None:
    store = small_tables(tmp_path)
    for entry in Path(store.path("batches"), "_delta_log").glob("*.json"):
        entry.write_text("{")
    assert doctor.examine("--tables", str(tmp_path)).marks("tables")["layout"] == "problem"


def test_tables_of_a_newer_version(doctor: Doctor, tmp_path: Path) -> None:
    store = small_tables(tmp_path)
    store.table("batches").alter.set_table_properties({PROPERTY: "1.999"}, raise_if_not_exists=False)
    ((mark, found),) = doctor.examine("--tables", str(tmp_path)).of("tables", "layout")
    assert mark == "problem"
    assert "layout 1.999" in found


def test_rows_in_quarantine(doctor: Doctor, tmp_path: Path) -> None:
    log = Log(partition=0)
    log.raw(b"\x00\x63", b"?")
    log.raw(b"\x00\x63", b"!")
    applied(log, Era.named("4"), [1], str(tmp_path))
    ((mark, found),) = doctor.examine("--tables", str(tmp_path)).of("tables", "quarantine")
    assert mark == "warning"
    assert found.startswith("quarantine has 2 rows; most frequent: ")


@pytest.mark.long
def test_an_object_store_that_does_not_answer(doctor: Doctor, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    found = doctor.examine("--tables", "s3://bucket/groups")
    assert found.marks("tables") == {"object store": "problem"}


def test_a_log_in_files(doctor: Doctor, tmp_path: Path) -> None:
    assert doctor.examine("--source", f"segments:{tmp_path}").marks("source") == {"position": "problem"}
    missing = doctor.examine("--source", f"jsonl:{tmp_path}/nowhere.jsonl")
    assert missing.marks("source") == {"position": "problem"}
    LogBuilder(tmp_path).append(0, [(b"key", b"value")])
    ((mark, found),) = doctor.examine("--source", f"segments:{tmp_path}").of("source", "position")
    assert (mark, found) == ("ok", f"segments:{tmp_path}: 1 partitions, read from their start by the first run")


def test_a_log_without_the_position_of_the_tables(doctor: Doctor, tmp_path: Path) -> None:
    small_tables(tmp_path / "tables")
    (tmp_path / "log.jsonl").touch()
    found = doctor.examine("--source", f"jsonl:{tmp_path}/log.jsonl", "--tables", str(tmp_path / "tables"))
    ((mark, text),) = found.of("source", "position")
    assert mark == "problem"
    assert "the log ends at offset 0, before offset 2 where the tables continue" in text


def test_brokers_that_are_not_there(doctor: Doctor, closed_port: int) -> None:
    server = f"127.0.0.1:{closed_port}"
    found = doctor.examine("--source", f"kafka://{server},{server}")
    # the same finding for each server, and none of the checks that would repeat it
    assert found.of("source", "bootstrap servers") == [("problem", f"{server}: connection refused")] * 2
    assert list(found.marks("source")) == ["bootstrap servers"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('sasl_username = "u"', "sasl_username is set, but security_protocol PLAINTEXT does not use SASL"),
        ('security_protocol = "TLS"', "connection option security_protocol 'TLS': expected one of PLAINTEXT"),
        ('security_protocol = "SSL"\nssl_cafile = "nowhere.pem"', "connection option ssl_cafile 'nowhere.pem': no such file"),
        (
            'security_protocol = "SASL_SSL"\nsasl_mechanism = "PLAIN"',
            "sasl_mechanism PLAIN needs sasl_password and sasl_username",
        ),
    ],
)
def test_settings_of_the_connection_that_contradict(settings: str, expected: str, doctor: Doctor, tmp_path: Path) -> None:
    found = doctor.examine("--source", "kafka://127.0.0.1:1", *conf(tmp_path, f"[kafka]\n{settings}\n"))
    ((mark, text),) = found.of("source", "bootstrap servers")
    assert mark == "problem"
    assert expected in text


def test_a_source_of_spark_is_not_opened(doctor: Doctor) -> None:
    assert doctor.examine("--source", "spark-kafka://127.0.0.1:1").marks("source") == {"connector": "warning"}


def test_a_master_that_is_not_there(capsys: Captured, closed_port: int, tmp_path: Path) -> None:
    arguments = conf(tmp_path, f'[spark]\nmaster = "spark://127.0.0.1:{closed_port}"\ndelta_jars = "provided"\n')
    assert main(["doctor", *arguments, "--spark"]) == 1
    assert f"problem  no Spark master answers at spark://127.0.0.1:{closed_port} (" in capsys.readouterr().out


@pytest.mark.parametrize(("days", "mark"), [(0, "ok"), (390, "warning"), (401, "problem")])
def test_files_of_certificates(days: int, mark: str, doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, both = self_made_certificate(tmp_path, days=400)
    expiry = expiry_of_file(str(both))
    assert abs(expiry - datetime.now(UTC) - timedelta(days=400)) < timedelta(hours=1)
    monkeypatch.setattr(timestamps, "now_ms", lambda: int(time.time() * 1000) + days * 86_400_000)
    text = f'[kafka]\nsecurity_protocol = "SSL"\nssl_cafile = "{certificate}"\n[dashboard]\ntls_certificate = "{certificate}"\n'
    found = doctor.examine(*conf(tmp_path, text))
    assert [found_mark for found_mark, _ in found.of("certificates", "files")] == [mark] * 2
    # the dashboard needs the key as well, which is a finding of its own
    assert found.marks("interfaces")["dashboard"] == "problem"


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_files_without_a_certificate(content: bytes, doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_bytes(content)
    found = doctor.examine(*conf(tmp_path, f'[kafka]\nssl_cafile = "{tmp_path}/empty.pem"\n'))
    assert found.marks("certificates") == {"files": "problem"}


def test_times_of_certificates_after_2049(tmp_path: Path) -> None:
    certificate, _ = self_made_certificate(tmp_path, days=36_500)
    assert expiry_of_file(str(certificate)).year > 2100
    der = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    for cut in (0, 1, 10, 40):
        with pytest.raises(ValueError, match="not a certificate"):
            expiry_of(der[:cut])


RULE = '[[rules]]\nname = "JobStopped"\non = "batch_age"\nabove = "5m"\nreceivers = ["ops"]'


def rules(tmp_path: Path, receiver: str) -> list[str]:
    file = tmp_path / "alerts.toml"
    file.write_text(f"{RULE}\n[receivers.ops]\n{receiver}\n")
    return ["--rules", str(file)]


@contextmanager
def tls_server(folder: Path) -> Iterator[int]:
    """A server that ends each connection after the handshake; its certificate expires in two days."""
    _, both = self_made_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            plain, _ = listener.accept()
            with plain, context.wrap_socket(plain, server_side=True) as secured:
                secured.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_receivers_of_alerts(doctor: Doctor, closed_port: int, tmp_path: Path) -> None:
    broken = doctor.examine(*rules(tmp_path, 'kind = "webhook"\nurl = "ftp://hooks"'))
    assert broken.of("interfaces", "alert rules") == [
        ("problem", f'{tmp_path}/alerts.toml: receiver "ops": url must begin with http:// or https:// and a host name')
    ]
    with tls_server(tmp_path) as port:
        found = doctor.examine(*rules(tmp_path, f'kind = "webhook"\nurl = "https://127.0.0.1:{port}/secret-token"'))
    assert found.of("interfaces", "alert rules") == [("ok", "rules: 1; owners: 0; receivers: 1 webhook")]
    ((mark, text),) = found.of("interfaces", "certificates")
    assert mark == "warning"
    assert text.startswith("receiver ops (127.0.0.1): the certificate expires ")
    assert "secret-token" not in str(found.rows)
    silent = doctor.examine(*rules(tmp_path, f'kind = "webhook"\nurl = "https://127.0.0.1:{closed_port}/x"'))
    assert silent.marks("interfaces")["certificates"] == "problem"


@pytest.mark.parametrize(
    ("ahead_ms", "mark"),
    [(-3_600_000, Severity.OK), (500, Severity.OK), (10_000, Severity.WARNING), (3_600_000, Severity.PROBLEM)],
)
def test_times_after_the_present(ahead_ms: int, mark: Severity) -> None:
    assert clocks.judged(ahead_ms, "the newest record", "the brokers").mark is mark
