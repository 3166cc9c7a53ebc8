"""Secrets of the configuration reach the brokers only: no message, no representation, no plan, no file contains them."""

import json
import traceback
from pathlib import Path

import pytest
from jobs import run_job
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from segment_builder import LogBuilder

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.job.run_options import RunOptions
from pipelines.job.spark import streaming_query
from pipelines.job.spark.change_stream import open_stream
from pipelines.job.spark.spark_kafka import jvm_settings
from pipelines.runtime.configuration import Configuration, load_configuration
from pipelines.runtime.errors import GrouplakeError, UsageError
from pipelines.source.address import parse_address
from pipelines.source.data_source import ConsumerOffsetsDataSource
from pipelines.source.log_reading import KAFKA_PREFIX, SourceOptions

SECRET = "correct-horse-battery"
KAFKA = {"sasl_password": SECRET, "sasl_oauth_token": f"{SECRET}-token", "ssl_password": f"{SECRET}-key"}


def configured(tmp_path: Path, protocol: str = "SASL_PLAINTEXT") -> str:
    lines = [
        "[kafka]",
        f'security_protocol = "{protocol}"',
        'sasl_mechanism = "PLAIN"',
        'sasl_username = "reader"',
        f'sasl_password = "{SECRET}"',
        "[kafka.jvm]",
        f'"ssl.key.password" = "{SECRET}"',
        "[spark.conf]",
        f'"spark.hadoop.fs.s3a.secret.key" = "{SECRET}"',
    ]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def run_options(configuration: Configuration, source: str, tables: Path) -> RunOptions:
    return RunOptions(
        address=parse_address(source),
        tables=str(tables),
        era=Era.named("4"),
        retention_ms=1,
        bulk_rows=1,
        tasks=1,
        spark=configuration.spark,
        kafka=KAFKA,
        kafka_jvm=configuration.kafka["jvm"],
    )


def test_representations(tmp_path: Path) -> None:
    configuration = load_configuration(configured(tmp_path))
    assert configuration.kafka_options["sasl_password"] == SECRET
    options = run_options(configuration, "segments:x", tmp_path)
    source = SourceOptions.parse({"path": "segments:x", **{f"kafka.{name}": value for name, value in KAFKA.items()}})
    assert source.kafka == KAFKA
    for shown in (configuration, options, source):
        assert SECRET not in f"{shown!r} {shown}"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = KafkaSource.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "connect_limit_seconds", 0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("with_tracebacks", [False, True])
@pytest.mark.parametrize("command", ["run", "show"])
@pytest.mark.parametrize(
    ("address", "protocol"),
    [
        ("kafka://127.0.0.1:1/__consumer_offsets", "SASL_PLAINTEXT"),
        ("kafka://127.0.0.1:1/__consumer_offsets", "PLAINTEXT"),
        ("kafka://127.0.0.1:1/__consumer_offsets", "NONSENSE"),
        (f"kafka://reader:{SECRET}@127.0.0.1:1/__consumer_offsets", "PLAINTEXT"),
        (f"reader:{SECRET}@127.0.0.1:1", "PLAINTEXT"),
        (f"{SECRET}@127.0.0.1", "PLAINTEXT"),
    ],
)
def test_messages_and_tracebacks(
    command: str,
    address: str,
    protocol: str,
    with_tracebacks: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = [command, "--source", address, "--conf", configured(tmp_path, protocol)]
    arguments += ["--tables", str(tmp_path / "tables")] if command == "run" else []
    shown = ""
    if with_tracebacks:
        monkeypatch.setenv("GROUPLAKE_TRACEBACK", "1")
        with pytest.raises(GrouplakeError) as raised:
            main(arguments)
        shown = "".join(traceback.format_exception(raised.value))
    else:
        # 1: the address is valid, but no broker answers
        assert main(arguments) == (1 if protocol == "SASL_PLAINTEXT" else 2)
    out, err = capsys.readouterr()
    assert SECRET not in out + err + shown
    assert len(out + err + shown) > 50


def test_a_value_of_the_wrong_type_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[kafka]\nsasl_password = 424242424242\n")
    with pytest.raises(UsageError) as raised:
        load_configuration(str(tmp_path / "mine.toml"))
    assert "424242" not in str(raised.value)


@pytest.fixture
def log(tmp_path: Path) -> str:
    key, value = encode(Record(1, OffsetCommitKey("g", "t", 0), OffsetCommitValue(5, commit_timestamp=1), 3))
    LogBuilder(tmp_path / "log").append(0, [(key, value)])
    return f"segments:{tmp_path / 'log'}"


@pytest.mark.long
@pytest.mark.spark
def test_plans_and_progress(spark: SparkSession, log: str, tmp_path: Path) -> None:
    changes = open_stream(spark, run_options(load_configuration(None), log, tmp_path), None)
    query = (
        changes.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    plan = changes._jdf.queryExecution().toString()
    assert "kafka.sasl_password=*********(redacted)" in plan
    shown = [plan, query._jsq.explainInternal(True), json.dumps(query.lastProgress, default=str), str(query.status)]
    assert SECRET not in "".join(shown)
    assert files_with_the_secret(tmp_path) == []


@pytest.mark.spark
def test_plans_of_sparks_own_kafka_source(spark: SparkSession) -> None:
    kafka = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "reader", "sasl_password": SECRET}
    settings = jvm_settings(kafka, {"ssl.key.password": SECRET})
    assert SECRET in settings["sasl.jaas.config"]
    reader = spark.readStream.format("kafka").option("subscribe", "t").option("kafka.bootstrap.servers", "127.0.0.1:1")
    for name, value in settings.items():
        reader = reader.option(f"kafka.{name}", value)
    plan = reader.load()._jdf.queryExecution().toString()
    assert "kafka.sasl.jaas.config=*********(redacted)" in plan
    assert SECRET not in plan


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_tables_and_checkpoints(log: str, tmp_path: Path) -> None:
    lines = run_job(log, tmp_path / "tables", kafka=KAFKA)
    assert SECRET not in "".join(lines)
    assert (tmp_path / "tables" / "_checkpoint").is_dir()
    assert files_with_the_secret(tmp_path) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("address", "protocol", "named"),
    [
        ("segments:/nowhere", "SASL_SSL", "LogNotFound"),
        ("kafka://127.0.0.1:1/__consumer_offsets", "NONSENSE", "LogMisconfigured"),
        ("kafka://127.0.0.1:1/__consumer_offsets", "SSL", "LogMisconfigured"),
    ],
)
def test_errors_of_workers(spark: SparkSession, address: str, protocol: str, named: str) -> None:
    """They pass through Python, Java and Python again, with the stack traces of all of them."""
    spark.dataSource.register(ConsumerOffsetsDataSource)
    reader = spark.read.format(ConsumerOffsetsDataSource.name())
    for name, value in {**KAFKA, "security_protocol": protocol, "ssl_certfile": "/nowhere.pem"}.items():
        reader = reader.option(f"{KAFKA_PREFIX}{name}", value)
    with pytest.raises(PySparkException) as raised:
        reader.load(address).collect()
    shown = "".join(traceback.format_exception(raised.value))
    assert named in shown
    assert SECRET not in f"{shown} {raised.value!r} {streaming_query.short_error(raised.value)}"


def files_with_the_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
