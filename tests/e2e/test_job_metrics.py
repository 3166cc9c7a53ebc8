"""`/metrics` of a job: the series of its tables, its position in the log, and how the server behaves."""

import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from eventually import eventually
from following import Job
from lag_tables import SAMPLED_AT, lag_row, write_tables
from metrics_text import series, values
from patience import PATIENCE_SECONDS
from segment_builder import LogBuilder

from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.service.net.addresses import parse_listen_address
from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.metrics.job_metrics import JobLogs, job_metrics
from pipelines.runtime.configuration import load_configuration
from pipelines.source.address import parse_address
from pipelines.source.transaction_log import transaction_address

SECTION = load_configuration(None).metrics


def logs(source: str, tables: Path) -> JobLogs:
    return JobLogs(str(tables), parse_address(source), None, {})


def scraped(address: object) -> bytes:
    return httpx.get(f"http://{address}/metrics", timeout=PATIENCE_SECONDS).content


def behind(text: bytes, log: str = "log") -> Mapping[tuple[str, ...], float]:
    return values(text, f"grouplake_{log}_behind_offsets", "cluster_name", "log_partition")


@pytest.mark.long
def test_series_of_the_tables_and_the_position_in_the_log(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "log")
    for partition, records in ((0, 9), (1, 2), (2, 4)):
        log.append(partition, [(b"key", b"value")] * records)
    transactions = LogBuilder(tmp_path / "log", TRANSACTION_STATE_TOPIC)
    for partition, records in ((0, 4), (1, 6)):
        transactions.append(partition, [(b"key", b"value")] * records)
    tables = tmp_path / "east"
    source = logs(f"segments:{tmp_path / 'log'}", tables)
    both = source._replace(transactions=transaction_address(source.offsets, "source", "4"))
    with job_metrics(parse_listen_address("127.0.0.1:0"), both, SECTION, print) as at:
        # before the first batch
        text = scraped(at)
        assert values(text, "grouplake_tables_up", "cluster_name") == {("east",): 0}
        # the tables have partition 0 up to offset 7 and partition 1 up to 3
        write_tables(str(tables), transaction_offsets={0: 3, 1: 6}, lag=[lag_row("billing", "orders", 0, 1, 3)])
        found = eventually(
            "the batch and the ends of the log",
            lambda: scraped(at),
            lambda text: "grouplake_batch_id" in series(text) and behind(text) and behind(text, "transaction_log"),
        )
        assert behind(found, "transaction_log") == {("east", "0"): 1, ("east", "1"): 0}
        assert behind(found) == {("east", "0"): 2, ("east", "1"): 0, ("east", "2"): 4}
        assert values(found, "grouplake_snapshot_timestamp_seconds", "cluster_name") == {("east",): SAMPLED_AT.timestamp()}
    with pytest.raises(httpx.TransportError):
        scraped(at)


def test_an_unreadable_log_has_no_position(tmp_path: Path) -> None:
    with job_metrics(parse_listen_address("127.0.0.1:0"), logs("segments:/nowhere", tmp_path / "t"), SECTION, print) as at:
        assert behind(scraped(at)) == {}


def test_requests(tmp_path: Path) -> None:
    with job_metrics(parse_listen_address("127.0.0.1:0"), logs("segments:/nowhere", tmp_path / "t"), SECTION, print) as at:
        with httpx.Client(base_url=f"http://{at}", timeout=PATIENCE_SECONDS) as client:
            assert client.get("/health").json() == {"status": "ok"}
            assert client.get("/other").status_code == 404
            assert client.post("/metrics").status_code == 501
            compressed = client.get("/metrics")
            plain = client.get("/metrics", headers={"Accept-Encoding": "identity"})
            assert compressed.headers["content-encoding"] == "gzip"
            assert compressed.content == plain.content
            head = client.head("/metrics")
            assert (head.status_code, head.content) == (200, b"")
            unchanged = client.get("/metrics", headers={"If-None-Match": plain.headers["etag"]})
            assert (unchanged.status_code, unchanged.content) == (304, b"")
        # a client that sends nothing does not hold up the others, nor the end
        assert at is not None
        with socket.create_connection((at.host, at.port)):
            assert httpx.get(f"http://{at}/health").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--metrics", "9404"], 2, "--metrics: invalid address '9404': use HOST:PORT, such as"),
        (["--metrics", "192.0.2.1:9404"], 2, "192.0.2.1:9404 is not a loopback address, and the server has no authentication"),
        (["--metrics", "192.0.2.1:9404", "--conf", "REMOTE"], 1, "cannot listen on 192.0.2.1:9404: Cannot assign requested"),
        (["--conf", "LISTEN"], 2, "0.0.0.0:9404 is not a loopback address"),
    ],
)
def test_invalid_addresses(
    arguments: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"REMOTE": "allow_remote = true", "LISTEN": "listen = '0.0.0.0:9404'"}
    for name, line in settings.items():
        (tmp_path / name).write_text(f"[metrics]\n{line}\n")
    arguments = [str(tmp_path / each) if each in settings else each for each in arguments]
    given: list[Any] = ["run", "--source", "segments:/nowhere", "--tables", str(tmp_path / "tables"), *arguments]
    assert main(given) == code
    assert capsys.readouterr().err.startswith(f"grouplake: {message}")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_a_job_that_follows_a_live_cluster(tmp_path: Path) -> None:
    conf = tmp_path / "conf.toml"
    conf.write_text("[lag]\ninterval_seconds = 1\n[metrics]\nlisten = '127.0.0.1:0'\n")
    with PrivateBroker("4.1.1", offsets_partitions=2) as broker, Clients(broker.bootstrap) as clients:
        clients.create_topics(["orders"], 3)
        clients.produce("orders", 3, 30)
        simple = clients.consumer("billing")
        clients.commit(simple, [("orders", 0, 4), ("orders", 1, 10)])
        source = f"kafka://{broker.bootstrap}/__consumer_offsets"
        with Job(source, tmp_path / "east", "--conf", str(conf)) as job:
            job.wait_until_logged("metrics: http://")
            address = job.lines_with("metrics: http://")[0].removeprefix("metrics: http://").removesuffix("/metrics")

            job.wait_until_logged("sample of end offsets")

            def text() -> bytes:
                return scraped(address)

            wanted = {"kafka_consumergroup_lag", "kafka_broker_info", "grouplake_log_behind_offsets"}
            found = eventually(
                "lag, brokers and the position",
                text,
                lambda body: wanted <= series(body).keys(),
                unless=job.failure,
                pause_seconds=0.2,
            )
            assert values(found, "kafka_consumergroup_lag", "consumergroup", "partition") == {
                ("billing", "0"): 6,
                ("billing", "1"): 0,
            }
            assert values(found, "kafka_broker_info", "address") == {(broker.bootstrap,): 1}
            # the log is a topic of the job
            assert values(found, "kafka_topic_partitions", "topic") == {("orders",): 3, ("__consumer_offsets",): 2}
            missing = values(found, "kafka_topic_partition_under_replicated_partition", "topic", "partition")
            assert {place: value for place, value in missing.items() if place[0] == "orders"} == {
                ("orders", str(partition)): 0 for partition in range(3)
            }
            assert values(found, "kafka_consumergroup_poll_time_ms", "cluster_name").keys() == {("east",)}
            eventually("the log is read", text, lambda body: set(behind(body).values()) == {0}, unless=job.failure)
            job.signal(signal.SIGTERM)
            assert job.ended() == 0
            assert job.tracebacks == []
