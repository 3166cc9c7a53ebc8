"""The command line as users and shells meet it: help, versions, completion, pipes, and the modules that it does not load."""

import argparse
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest
from log_builder import Log, member
from patience import PATIENCE_SECONDS
from table_logs import applied

from coordinator_core.state.era import ALL_ERAS, Era
from pipelines.alerts.rules_file import EXAMPLE
from pipelines.cli import main
from pipelines.cli.parser import parser
from pipelines.tables import definitions

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("grouplake")
COMMANDS = (
    *("demo", "example", "start", "run", "maintain", "backup", "restore", "rebuild", "sql", "lag", "diff", "check", "catalog"),
    *("show", "dashboard", "mcp", "credential", "alerts", "coordinator", "doctor", "cache", "completion"),
)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    log = Log(partition=3)
    log.commit(0, 5, group="g")
    log.group([member()], group="g")
    root = str(tmp_path_factory.mktemp("tables"))
    applied(log, Era.named("4"), [1], root)
    return root


def helped(capsys: Captured, *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--help"])
    assert left.value.code == 0
    return capsys.readouterr().out


def test_help_is_a_table_of_contents(capsys: Captured) -> None:
    text = helped(capsys)
    assert re.findall(r"^  (\w+) +\S", text, re.MULTILINE) == list(COMMANDS)
    # a command outside of any section would be missing
    (subcommands,) = (each.choices for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    assert set(subcommands) == set(COMMANDS)
    assert re.findall(r"^(\S.*):$", text, re.MULTILINE) == [
        "try it",
        "follow a cluster",
        "write tables",
        "back up and upgrade tables",
        "read",
        "watch",
        "serve Kafka clients",
        "this machine",
    ]


def test_make_help_is_a_table_of_contents() -> None:
    printed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert re.findall(r"^  make (\S+) +\S", printed, re.MULTILINE) == phony.split()
    assert re.findall(r"^(\w.*):$", printed, re.MULTILINE)[1:] == ["test", "measure", "maintain"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples(command: str, capsys: Captured) -> None:
    text = helped(capsys, command)
    examples = text.partition("examples:\n")[2].splitlines()
    assert any(line.strip().startswith((f"grouplake {command}", "source <(")) for line in examples)


def test_the_help_of_sql_names_every_table_and_view(capsys: Captured) -> None:
    text = helped(capsys, "sql")
    names = {kind: found.split() for kind, found in re.findall(r"^(tables|views):(.*)", text, re.MULTILINE)}
    assert {kind: set(found) for kind, found in names.items()} == {
        "tables": {*definitions.WRITE_ORDER, *definitions.ALERTS},
        "views": set(definitions.VIEWS),
    }


@pytest.mark.parametrize("command", ["run", "show"])
def test_the_help_names_every_era(command: str, capsys: Captured) -> None:
    text = " ".join(helped(capsys, command).split())
    assert f": {', '.join(ALL_ERAS)} (default 4)" in text


def test_version(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    version = re.escape(metadata.version("grouplake").partition("+")[0])
    assert re.fullmatch(rf"grouplake {version}( \(git [0-9a-f]{{7,}}(-dirty)?\))?\n", capsys.readouterr().out)


def test_bash_completes(tmp_path: Path) -> None:
    script = f"""
        set -eu
        PATH={PROGRAM.parent}:$PATH
        source <(grouplake completion bash)
        complete -p grouplake
        COMP_WORDS=(grouplake sh) COMP_CWORD=1
        "$(complete -p grouplake | sed 's/.*-F \\([^ ]*\\).*/\\1/')" grouplake sh grouplake
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    found = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, cwd=tmp_path
    )
    assert found.stderr == ""
    registered, *replies = found.stdout.split("\n")
    assert registered.endswith(" grouplake")
    assert "show" in [reply.strip() for reply in replies]


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_every_command(shell: str, capsys: Captured) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)


@pytest.mark.parametrize("rows", [3, 200_000])
def test_a_reader_that_has_seen_enough(rows: int, tables: str) -> None:
    query = f"SELECT value FROM generate_series(1, {rows})"
    script = f'"{PROGRAM}" sql --tables "{tables}" "{query}" --format csv | head -1; echo "${{PIPESTATUS[0]}}"'
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert found.stderr == ""
    assert found.stdout.splitlines() == ["value", "0"]


def test_a_reader_that_is_gone_already(tables: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        command = [str(PROGRAM), "sql", "--tables", tables, "SELECT 1"]
        found = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, timeout=PATIENCE_SECONDS, check=False)
    assert found.stderr == b""
    assert found.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["sql", "--tables", "{tables}", "SELECT * FROM expiring_offsets"], {"pyspark", "delta", "sqlglot", "numba", "kafka"}),
        (["sql", "--tables", "{tables}", "--as-of", "0", "SELECT 1"], {"pyspark", "delta", "sqlglot", "numba", "kafka"}),
        (["lag", "--tables", "{tables}", "--all-groups"], {"pyspark", "delta", "sqlglot", "numba", "kafka"}),
        (["alerts", "--tables", "{tables}", "--rules", "{rules}", "--once"], {"pyspark", "delta", "numba", "kafka"}),
        (["diff", "--tables", "{tables}", "--from", "0"], {"pyspark", "delta", "sqlglot", "numba", "kafka"}),
        (["check", "--tables", "{tables}"], {"pyspark", "delta", "sqlglot", "numba", "kafka"}),
        (["catalog", "--tables", "{tables}"], {"pyspark", "delta", "sqlglot", "numba", "kafka"}),
        (["show", "--source", "jsonl:{empty}"], {"pyspark", "delta", "deltalake", "kafka"}),
        (["run", "--source", "jsonl:nowhere", "--tables", "t"], {"pyspark", "delta", "kafka"}),
        (["completion", "bash"], {"pyspark", "delta", "deltalake", "pyarrow", "numpy", "numba"}),
    ],
)
def test_what_a_command_loads(arguments: list[str], unwanted: set[str], tables: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    given = [argument.format(tables=tables, empty=empty, rules=EXAMPLE) for argument in arguments]
    program = (
        "import json, sys\n"
        "from pipelines.cli import main\n"
        f"main({given!r})\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    loaded = set(json.loads(found.stderr.splitlines()[-1]))
    assert loaded & unwanted == set()


def test_a_query_from_the_shell_imports_no_pandas(tables: str) -> None:
    program = "import sys; from pipelines.cli import main; main(); print('pandas' in sys.modules)"
    sql = "SELECT committed_offset, commit_timestamp, arrow_cast(1500, 'Timestamp(Nanosecond, None)') AS at FROM offsets"
    command = [sys.executable, "-c", program, "sql", "--tables", tables, "--format", "csv", sql]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert found.stdout.splitlines()[1:] == ["5,2023-11-14T22:13:20.000Z,1970-01-01T00:00:00.000001Z", "False"]


@pytest.mark.parametrize(
    ("format_name", "expected"),
    [
        ("json", '{"group_id": "g", "commit_timestamp": "2023-11-14T22:13:20.000Z"}\n'),
        ("csv", "group_id,commit_timestamp\ng,2023-11-14T22:13:20.000Z\n"),
        (
            "table",
            "group_id  commit_timestamp\n────────  ────────────────────────\ng         2023-11-14T22:13:20.000Z\n(1 row)\n",
        ),
    ],
)
def test_sql_prints(format_name: str, expected: str, tables: str, capsys: Captured) -> None:
    assert main(["sql", "--tables", tables, "SELECT group_id, commit_timestamp FROM offsets", "--format", format_name]) == 0
    assert capsys.readouterr() == (expected, "")


def test_json_of_every_table_and_view_is_json(tables: str, capsys: Captured) -> None:
    for name in (*definitions.WRITE_ORDER, *definitions.VIEWS):
        assert main(["sql", "--tables", tables, f"SELECT * FROM {name}", "--format", "json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        for line in out.splitlines():
            assert isinstance(json.loads(line), dict)


def test_as_of_shows_the_tables_as_a_batch_left_them(tables: str, capsys: Captured) -> None:
    counts = []
    now = datetime.now(UTC)
    for as_of in ("0", "1", now.isoformat(), now.replace(tzinfo=None).isoformat()):
        assert main(["sql", "--tables", tables, "SELECT state FROM groups", "--format", "csv", "--as-of", as_of]) == 0
        counts.append(capsys.readouterr().out.splitlines()[1:])
    assert counts == [["Empty"], ["Stable"], ["Stable"], ["Stable"]]
    assert main(["sql", "--tables", tables, "SELECT state FROM groups", "--as-of", "2100-01-01"]) == 2
    assert "is in the future" in capsys.readouterr().err
    assert main(["sql", "--tables", tables, "SELECT batch_id FROM batches", "--format", "csv", "--as-of", "0"]) == 0
    assert capsys.readouterr().out == "batch_id\n0\n"


def test_output_is_utf8_in_every_locale(tables: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = subprocess.run(
        [PROGRAM, "sql", "--tables", tables, "SELECT 'é' AS x"],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env=environment,
    )
    assert found.returncode == 0
    assert found.stderr == b""
    assert found.stdout.decode("utf-8") == "x\n─\né\n(1 row)\n"
