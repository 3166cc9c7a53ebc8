"""Bad input: exit code 2, exactly one line that explains the error, nothing written, and Spark never started."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from log_builder import Log, member
from patience import PATIENCE_SECONDS
from segment_builder import LogBuilder
from table_logs import applied

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.job import job

COMMIT = encode(Record(1, OffsetCommitKey("g", "t", 0), OffsetCommitValue(5, commit_timestamp=1), 3))
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_spark_and_no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job fails where it would start Spark."""

    def refuse(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(job, "run_in_spark", refuse)
    defaults = KafkaSource.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "connect_limit_seconds", 0.2)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tables of era 3 that end at offset 2 of log partition 3."""
    log = Log(partition=3)
    log.commit(0, 5, group="g")
    log.group([member()], group="g")
    root = str(tmp_path_factory.mktemp("tables"))
    applied(log, Era.named("3"), [], root)
    return root


#: The place or the value: quoted, a path, an option, a key of the configuration, a number, or an argument's name.
PLACE_OR_VALUE = re.compile(r"'[^']*'|[^ ]*/[^ ]+|--\w|\b[a-z]\w*\.\w+|\d|\b[A-Z]{5,}\b|\bname of the folder\b")
#: What is wrong with it.
PROBLEM = re.compile(
    r"\b(invalid|unknown|unrecognized|required|no|not|cannot|ends?|starts|must|denied|only|made with|empty|already|is)\b"
)
#: The bound, or what to do.
WHAT_TO_DO = re.compile(
    r": use |: choose|choose from|choose one of|\(known: |\bsee |: name a |must be one of|is this a folder|start over|such as"
)


def refused(capsys: Captured, *arguments: str, code: int = 2) -> str:
    """The one line of a command that fails: what happened, the place or the value, and no more sentences than needed."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("grouplake: ")
    assert err.count("\n") == 1
    line = err.strip().removeprefix("grouplake: ")
    if line.startswith("query failed: "):
        return line  # the engine's message
    assert PROBLEM.search(line), line
    assert PLACE_OR_VALUE.search(line), line
    assert not line.endswith("."), line
    if line.startswith(("invalid ", "unknown ")):
        assert WHAT_TO_DO.search(line), line
    return line


def jsonl(tmp_path: Path, text: str) -> str:
    (tmp_path / "log.jsonl").write_text(text)
    return f"jsonl:{tmp_path / 'log.jsonl'}"


LINE = json.dumps({"partition": 3, "offset": 0, "timestamp": 1, "key": "AAE=", "value": None}) + "\n"


@pytest.mark.parametrize("command", ["run", "show"])
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("foo:bar", "invalid source address 'foo:bar': use kafka://"),
        ("", "invalid source address ''"),
        ("segments:", "invalid source address"),
        ("kafka://broker", "invalid source address"),
        ("segments:{folder}/nowhere", "{folder}/nowhere: no such directory"),
        ("segments:{folder}", "{folder}: no __consumer_offsets-N folder in this directory"),
        ("segments:{folder}/file", "{folder}/file: no such directory"),
        ("jsonl:{folder}/nowhere.jsonl", "{folder}/nowhere.jsonl: no such file"),
        ("jsonl:{folder}", "{folder} is a directory: name a file"),
    ],
)
def test_sources(command: str, address: str, message: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").touch()
    more = ["--tables", str(tmp_path / "tables")] if command == "run" else []
    line = refused(capsys, command, "--source", address.format(folder=tmp_path), *more)
    assert line.startswith(message.format(folder=tmp_path))
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize("command", ["run", "show"])
def test_brokers_that_do_not_answer(command: str, tmp_path: Path, capsys: Captured) -> None:
    """They may answer later, so service managers should try again: not exit code 2."""
    more = ["--tables", str(tmp_path / "tables")] if command == "run" else []
    line = refused(capsys, command, "--source", "kafka://127.0.0.1:1/__consumer_offsets", *more, code=1)
    assert line.startswith("no broker answers at 127.0.0.1:1")
    assert not (tmp_path / "tables").exists()


def test_a_folder_that_may_not_be_listed(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", forbidden)
    assert refused(capsys, "show", "--source", f"segments:{tmp_path}") == f"{tmp_path}: Permission denied"


def test_show_needs_a_source_that_is_read_without_spark(capsys: Captured) -> None:
    assert "cannot be read without Spark" in refused(capsys, "show", "--source", "spark-kafka://127.0.0.1:1/__consumer_offsets")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE + LINE[:30], "line 2: not JSON"),
        (LINE + "\n[]\n", "line 3: not a JSON object"),
        (LINE.replace("AAE=", "AAE"), "line 1: key is not base64"),
        ('{"offset": 1}\n', "line 1: partition is None, not a 32-bit integer"),
    ],
)
def test_json_lines_that_are_cut_or_no_records(text: str, message: str, tmp_path: Path, capsys: Captured) -> None:
    source = jsonl(tmp_path, text)
    assert message in refused(capsys, "run", "--source", source, "--tables", str(tmp_path / "tables"))
    assert message in refused(capsys, "show", "--source", source)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["run"], "the following arguments are required: --source, --tables (see grouplake run --help)"),
        (["run", "--source", "segments:x", "--tables", "t", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        (
            ["run", "--source", "segments:x", "--tables", "t", "--era", "9"],
            "unknown era '9': choose one of 0.9, 0.10, 1, 2, 3, 4, redpanda",
        ),
        (["run", "--source", "segments:x", "--tables", "t", "--trigger", "soon"], "invalid trigger 'soon'"),
        (
            ["run", "--source", "segments:x", "--tables", "t", "--trigger", "0s"],
            "invalid trigger '0s': use an interval of 1ms or more",
        ),
        (
            ["run", "--source", "segments:x", "--tables", "t", "--trigger", "000ms"],
            "invalid trigger '000ms': use an interval of 1ms",
        ),
        (["run", "--source", "segments:x", "--tables", "t", "--trigger", "9" * 5_000 + "s"], "invalid trigger '999"),
        (["cache", "--clear", "jar"], "--clear jar: no such kind: use "),
        (["run", "--source", "segments:x", "--tables", "t", "--expiry", "maybe"], "invalid choice: 'maybe'"),
        (["run", "--source", "segments:x", "--tables", "t", "--retention-minutes", "0"], "'0' is not a whole number above 0"),
        (["run", "--source", "segments:x", "--tables", "t", "--now", "today"], "'today' is not a time in ms"),
        (["run", "--source", "segments:x", "--tables", "t", "--now", "9" * 30], "is not a time in ms"),
        (["run", "--source", "segments:x", "--tables", ""], "the name of the folder is empty"),
        (["run", "--source", "segments:x", "--tables", "t", "--conf", "nowhere.toml"], "no configuration file 'nowhere.toml'"),
        (
            ["run", "--source", "jsonl:x", "--tables", "t", "--with-coordinator"],
            "--source jsonl:x: with --with-coordinator the source must be the folder of its log, segments:DIR",
        ),
        (
            ["run", "--source", "segments:x", "--tables", "t", "--with-coordinator", "9092"],
            "invalid address '9092': use HOST:PORT",
        ),
        (["run", "--source", "segments:x", "--tables", "t", "--with-coordinator", "--trigger", "soon"], "invalid trigger 'soon'"),
        (
            ["run", "--source", "segments:x", "--tables", "t", "--with-coordinator", "--trigger", "available-now"],
            "--trigger available-now would end the job and with it the coordinator",
        ),
        (
            ["run", "--source", "segments:x", "--tables", "t", "--with-coordinator", "--era", "3"],
            "coordinator.era is 4, but the era of the tables is 3",
        ),
        (["show", "--source", "segments:x", "--format", "classic", "--era", "2.8"], "unknown era '2.8'"),
        (["show", "--source", "segments:x", "--format", "xml"], "invalid choice: 'xml'"),
        (["sql", "SELECT 1"], "the following arguments are required: --tables"),
        (["sql", "--tables", "{tables}", "--conf", "mine.toml", "SELECT 1"], "unrecognized arguments: --conf"),
        (["check", "--tables", "{tables}", "--conf", "mine.toml"], "unrecognized arguments: --conf mine.toml"),
        (["completion", "cmd"], "invalid choice: 'cmd'"),
        (["demo", "--kafka", "new"], "'new' is not a Kafka version such as 4.1.1"),
        (
            ["demo", "--kafka", "2.7.2"],
            "--kafka 2.7.2: must be 2.8.0 or newer; --broker 2.7.2 shows the groups of the broker",
        ),
        (["demo", "--tables", "{tables}"], "there are tables under {tables} already: name a new or empty folder"),
    ],
)
def test_arguments(arguments: list[str], message: str, tables: str, capsys: Captured) -> None:
    assert message.format(tables=tables) in refused(capsys, *(argument.format(tables=tables) for argument in arguments))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[job]\nspeed = 1\n", "unknown key job.speed (known: era, retention_minutes, trigger"),
        ("[jobs]\n", "unknown key jobs"),
        ("[job]\nbulk_rows = 'many'\n", "job.bulk_rows must be an integer, not a string"),
        ("[job]\nera = 4\n", "job.era must be a string, not an integer"),
        ("[job]\ntasks = -1\n", "job.tasks is -1: must not be negative"),
        ("[job]\ntasks = 2026-01-01\n", "job.tasks must be an integer, not a date"),
        ("job = 1\n", "job is a section, not a value"),
        ("[job]\nera = '5'\n", "unknown era '5'"),
        ("[job]\ntrigger = 'soon'\n", "invalid trigger 'soon'"),
        ("[job]\nexpiry = 'maybe'\n", "job.expiry is 'maybe': must be one of observe, apply"),
        (
            "[kafka]\nsasl_password = 'env:NOT_SET_ANYWHERE'\n",
            "kafka.sasl_password: environment variable NOT_SET_ANYWHERE is not set",
        ),
        ("[job\n", "cannot read configuration"),
        ("\0", "cannot read configuration"),
    ],
)
def test_configuration(text: str, message: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine.toml").write_text(text)
    source = jsonl(tmp_path, LINE)
    line = refused(capsys, "run", "--source", source, "--tables", str(tmp_path / "t"), "--conf", str(tmp_path / "mine.toml"))
    assert message in line
    assert not (tmp_path / "t").exists()


def test_connection_options_that_contradict_each_other(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine.toml").write_text("[kafka]\nsasl_mechanism = 'PLAIN'\n")
    line = refused(capsys, "show", "--source", "kafka://127.0.0.1:1/x", "--conf", str(tmp_path / "mine.toml"))
    assert "sasl_mechanism is set, but security_protocol PLAINTEXT does not use SASL" in line


@pytest.mark.parametrize("command", [["sql", "SELECT 1"], ["check"], ["maintain"]])
def test_folders_that_hold_no_tables(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "nowhere", tmp_path / "file"):
        line = refused(capsys, *command, "--tables", str(folder))
        assert line == f"no table batches under {folder}: is this a folder that `grouplake run` wrote?"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "only queries are allowed"),
        ("-- nothing", "only queries are allowed"),
        ("SELEC 1", "only queries are allowed"),
        ("SELECT", "query failed: SQL error"),
        ("SELECT * FROM nowhere", "no table or view 'nowhere': "),
        ("SELECT nothing FROM groups", "query failed: Schema error: No field named nothing"),
        ("SELECT 1; SELECT 2", "only supports a single SQL statement"),
        ("SELECT CAST('x' AS INT)", "query failed"),
        ("SELECT * FROM '/etc/passwd'", "no table or view '/etc/passwd': "),
        ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", "only queries are allowed"),
        ("CREATE TABLE x AS SELECT 1", "only queries are allowed"),
        ("COPY (SELECT 1 AS a) TO '{folder}/out.csv'", "only queries are allowed"),
        ("/* SELECT */ COPY (SELECT 1 AS a) TO '{folder}/out.csv'", "only queries are allowed"),
        ("EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{folder}/out.csv'", "only queries are allowed"),
        ("EXPLAIN /* */ ANALYZE COPY (SELECT 1 AS a) TO '{folder}/out.csv'", "only queries are allowed"),
        ("EXPLAIN VERBOSE -- x\n ANALYZE COPY (SELECT 1 AS a) TO '{folder}/out.csv'", "only queries are allowed"),
        ("SELECT 1; COPY (SELECT 1 AS a) TO '{folder}/out.csv'", "only queries are allowed"),
        ("INSERT INTO topic_ids SELECT * FROM topic_ids", "only queries are allowed"),
        ("WITH x AS (SELECT * FROM topic_ids) INSERT INTO topic_ids SELECT * FROM x", "only queries are allowed"),
        ("SELECT * INTO copied FROM groups", "only queries are allowed"),
        ("DELETE FROM groups", "only queries are allowed"),
        ("UPDATE groups SET state = 'Empty'", "only queries are allowed"),
        ("DROP TABLE groups", "only queries are allowed"),
        ("DROP VIEW committed_offsets", "only queries are allowed"),
        ("TRUNCATE groups", "only queries are allowed"),
        ("SET datafusion.execution.batch_size = 1", "only queries are allowed"),
    ],
)
def test_sql_that_is_no_query(query: str, message: str, tables: str, tmp_path: Path, capsys: Captured) -> None:
    assert message in refused(capsys, "sql", "--tables", tables, query.format(folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "query",
    ["SELECT ' INTO ' AS t", 'SELECT 1 AS "into" -- INTO', "(SELECT 1)", "WITH x AS (SELECT 1) SELECT * FROM x", "VALUES (1)",
     "EXPLAIN SELECT * FROM groups", "DESCRIBE groups", "/* a */ -- b\n SELECT 1"],
)  # fmt: skip
def test_sql_that_is(query: str, tables: str, capsys: Captured) -> None:
    assert main(["sql", "--tables", tables, query]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("as_of", "message"),
    [
        ("yesterday", "invalid --as-of 'yesterday': use a batch id or an ISO 8601 time"),
        ("", "invalid --as-of"),
        ("²", "invalid --as-of"),
        ("-1", "invalid --as-of"),
        ("9" * 30, "invalid --as-of"),
        ("7", "no batch as of 7 under {tables}"),
        ("999999999999999999", "no batch as of 999999999999999999"),
        ("2001-01-01", "no batch as of 2001-01-01 00:00:00"),
        ("0001-01-01T00:00:00+14:00", "no batch as of 0001-01-01"),
        ("2999-01-01", "--as-of 2999-01-01T00:00:00+00:00 is in the future: use a time until now, 20"),
        ("9999-12-31T23:59:59.999999-14:00", "--as-of 9999-12-31T23:59:59.999999-14:00 is in the future"),
    ],
)
def test_as_of(as_of: str, message: str, tables: str, capsys: Captured) -> None:
    line = refused(capsys, "sql", "--tables", tables, f"--as-of={as_of}", "SELECT 1")
    assert line.startswith(message.format(tables=tables))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM offset", "no table or view 'offset': did you mean offsets or end_offsets?"),
        ("SELECT * FROM groups JOIN grups USING (group_id)", "no table or view 'grups': did you mean groups?"),
        ("SELECT * FROM commited_offsets", "no table or view 'commited_offsets': did you mean committed_offsets"),
        ("SELECT * FROM Groups", "no table or view 'Groups': did you mean groups?"),
        ('SELECT * FROM "OFFSETS"', "no table or view 'OFFSETS': did you mean offsets"),
        ("SELECT * FROM xyzzy", "no table or view 'xyzzy': `grouplake sql --help` lists them"),
    ],
)
def test_an_unknown_table(query: str, message: str, tables: str, capsys: Captured) -> None:
    assert refused(capsys, "sql", "--tables", tables, query).startswith(message)
    assert refused(capsys, "sql", "--tables", f"east={tables}", query).startswith(message)


def test_tables_of_another_era(tables: str, tmp_path: Path, capsys: Captured) -> None:
    line = refused(capsys, "run", "--source", jsonl(tmp_path, LINE), "--tables", tables, "--era", "4")
    assert line == (f"the tables under {tables} were made with era 3, not 4: use --era 3, or another folder")


def test_tables_that_cannot_be_written(tables: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    source = jsonl(tmp_path, LINE + LINE.replace('"offset": 0', '"offset": 1'))
    line = refused(capsys, "run", "--source", source, "--tables", str(tmp_path / "log.jsonl" / "tables"))
    assert line.startswith(f"cannot create table {tmp_path}/log.jsonl/tables/topic_ids")
    monkeypatch.setattr("os.access", lambda *_, **__: False)
    line = refused(capsys, "run", "--source", source, "--tables", tables, "--era", "3")
    assert line == f"cannot write into {tables}/batches: no permission, or a read-only file system"


@pytest.mark.long
def test_a_log_that_was_truncated_below_the_tables(tables: str, tmp_path: Path, capsys: Captured) -> None:
    log = LogBuilder(tmp_path / "log")
    log.append(3, [COMMIT])
    log.append(3, [COMMIT])
    log.tear(3, 1)
    line = refused(capsys, "run", "--source", f"segments:{log.directory}", "--tables", tables, "--era", "3")
    assert "partition 3: the log ends at offset 1, before offset 2 where the tables continue" in line
    assert line.endswith("start over with an empty --tables folder, or restore the log")


def test_a_log_that_lost_a_partition(tables: str, tmp_path: Path, capsys: Captured) -> None:
    log = LogBuilder(tmp_path / "log")
    log.append(0, [COMMIT])
    line = refused(capsys, "run", "--source", f"segments:{log.directory}", "--tables", tables, "--era", "3")
    assert "partition 3: the log ends at offset 0, before offset 2" in line


def test_a_log_that_begins_after_the_tables(tables: str, tmp_path: Path, capsys: Captured) -> None:
    log = LogBuilder(tmp_path / "log")
    log.skip(3, 10)
    log.append(3, [COMMIT])
    line = refused(capsys, "run", "--source", f"segments:{log.directory}", "--tables", tables, "--era", "3")
    assert (
        "partition 3: the log now starts at offset 10, but the tables need offset 2; the records in between were deleted" in line
    )


def test_the_program_itself_starts_no_java(tmp_path: Path) -> None:
    program, started = Path(sys.executable).with_name("grouplake"), tmp_path / "started"
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {started}\nexit 1\n")
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "home"), "PATH": f"{java.parent}:{os.environ['PATH']}"}
    for arguments in (["run", "--source", "segments:/nowhere", "--tables", tmp_path / "t"], ["sql"]):
        found = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env=environment
        )
        assert found.returncode == 2
        assert found.stdout == ""
        assert found.stderr.count("\n") == 1
        assert not started.exists()
