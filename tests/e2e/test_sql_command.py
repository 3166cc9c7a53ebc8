"""`grouplake sql` as a process: scripts, files of results, several clusters, and the prompt on a real terminal."""

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from eventually import eventually
from patience import PATIENCE_SECONDS
from pyarrow import csv, parquet
from two_clusters import two_clusters

from pipelines.tables import definitions

PROGRAM = Path(sys.executable).with_name("grouplake")


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return two_clusters(tmp_path_factory.mktemp("clusters"))


def ran(*arguments: str, text: str | None = None) -> tuple[int, str, str]:
    """Exit code, output and messages."""
    found = subprocess.run(
        [PROGRAM, "sql", *arguments], input=text or "", capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return found.returncode, found.stdout, found.stderr


def test_standard_input_is_a_script(roots: dict[str, str]) -> None:
    text = "SELECT 1 AS x;\n\\x\nSELECT group_id FROM groups ORDER BY 1"
    out = "x\n1\nExpanded display is on.\ngroup_id\naudit\nbilling\n"
    assert ran("--tables", roots["east"], "--format", "csv", text=text) == (0, out, "")
    assert ran("--tables", roots["east"], "--format", "csv") == (0, "", "")


def test_a_file_ends_at_its_first_error(roots: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "morning.sql"
    script.write_text("SELECT 1 AS x;\n-- two\nSELECT nothing;\nSELECT 3 AS x;")
    code, out, error = ran("--tables", roots["east"], "--format", "csv", "--file", str(script))
    assert (code, out) == (2, "x\n1\n")
    assert error.startswith(f"grouplake: {script}:3: query failed: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
def test_rows_in_a_file(suffix: str, roots: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / f"rows.{suffix}"
    path.write_text("old")
    query = "SELECT group_id, committed_offset, commit_timestamp FROM offsets"
    assert ran("--tables", roots["east"], query, "--output", str(path)) == (0, "", "")
    assert list(tmp_path.iterdir()) == [path]
    if suffix == "json":
        (row,) = map(json.loads, path.read_text().splitlines())
    elif suffix == "csv":
        (row,) = csv.read_csv(path).to_pylist()
    else:
        table = parquet.read_table(path)
        names = table.schema.names
        assert [table.schema.field(name).type for name in names] == [
            definitions.table("offsets").schema.field(name).type for name in names
        ]
        (row,) = table.to_pylist()
    assert (row["group_id"], row["committed_offset"]) == ("billing", 5)


def test_one_statement_of_several_clusters(roots: dict[str, str]) -> None:
    tables = [text for name, root in roots.items() for text in ("--tables", f"{name}={root}")]
    query = "SELECT cluster, count(*) AS n FROM groups GROUP BY cluster ORDER BY cluster"
    assert ran(*tables, "--format", "csv", query) == (0, "cluster,n\neast,2\nwest,1\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SELECT 1", "--file", "x.sql"], "both QUERY and --file"),
        (["SELECT 1", "--output", "x.xls"], "unknown format of 'x.xls': end the name with one of .parquet, .csv, .json"),
        (["SELECT 1", "--output", "/nowhere/x.csv"], "cannot write /nowhere/x.csv: No such file or directory"),
        (["SELECT 1; SELECT 2", "--output", "x.csv"], "--output takes the rows of one statement, not of 2"),
        (["--file", "/nowhere.sql"], "cannot read /nowhere.sql: No such file or directory"),
        (["--tables", "a/x", "--tables", "b/x", "SELECT 1"], "two folders for cluster 'x', a/x and b/x: name them"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], message: str, roots: dict[str, str]) -> None:
    code, out, error = ran("--tables", roots["east"], *arguments)
    assert (code, out) == (2, "")
    assert error.startswith("grouplake: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_script_loads_neither_spark_nor_pandas(roots: dict[str, str], tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "from pipelines.cli import main\n"
        "sys.argv[0] = 'grouplake'\n"
        "main()\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    given = ["sql", "--tables", roots["east"], "SELECT * FROM members", "--output", str(tmp_path / "rows.parquet")]
    found = subprocess.run(
        [sys.executable, "-c", program, *given], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    unwanted = {"pyspark", "delta", "sqlglot", "pandas", "numba", "kafka", "prompt_toolkit"}
    assert set(json.loads(found.stderr.splitlines()[-1])) & unwanted == set()


def test_the_prompt_loads_neither_spark_nor_pandas(roots: dict[str, str]) -> None:
    program = (
        "import io, json, sys\n"
        "from pipelines.runtime.hidden_pandas import hide_pandas\n"
        "hide_pandas()\n"
        "import pipelines.query.prompt.terminal\n"
        "from pipelines.query.prompt.shell import Shell\n"
        "from pipelines.query.prompt.source import SnapshotSource\n"
        "from pipelines.query.prompt.steps import run_text\n"
        f"run_text(Shell(SnapshotSource({{'': {roots['east']!r}}}), 'table', io.StringIO()), 'SELECT * FROM members; \\\\d')\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    loaded = set(json.loads(found.stdout))
    assert "prompt_toolkit" in loaded
    assert loaded & {"pyspark", "delta", "sqlglot", "pandas", "numba", "kafka"} == set()


class Terminal:
    """The far end of a pseudo-terminal, with all that the process has written to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def await_text(self, text: str) -> None:
        """Wait until the process has written `text` since the last call."""
        eventually(f"the terminal shows {text!r}", self._read, lambda shown: text in shown)
        self.shown = self.shown.partition(text)[2]

    def _read(self) -> str:
        while select.select([self._descriptor], [], [], 0.05)[0]:
            try:
                data = os.read(self._descriptor, 65536)
            except OSError:
                # the process has closed its end
                break
            if b"\x1b[6n" in data:
                # prompt-toolkit requests where the cursor is
                os.write(self._descriptor, b"\x1b[1;1R")
            self.shown += data.decode(errors="replace")
        return self.shown


@contextmanager
def prompt(root: str, state: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    near, far = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(state), "PAGER": "", **variables}
    with subprocess.Popen(
        [PROGRAM, "sql", "--tables", root], stdin=far, stdout=far, stderr=far, env=environment, start_new_session=True
    ) as process:
        os.close(far)
        try:
            yield process, Terminal(near)
        finally:
            process.kill()
            os.close(near)


def test_the_prompt_on_a_terminal(roots: dict[str, str], tmp_path: Path) -> None:
    with prompt(roots["east"], tmp_path) as (process, terminal):
        terminal.await_text("\\? lists the commands")
        terminal.await_text(f"{roots['east']}, batch 1 of 20")
        terminal.await_text("batch 1>")
        terminal.type("SELECT 40 + 2 AS answer;\r")
        terminal.await_text("(1 row)")
        terminal.await_text("batch 1>")
        terminal.type("SELECT not finished")
        terminal.await_text("finished")
        terminal.type("\x03")
        terminal.await_text("batch 1>")
        terminal.type("SELECT nothing;\r")
        terminal.await_text("error: query failed")
        terminal.await_text("batch 1>")
        terminal.type("\\q\r")
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert "+SELECT 40 + 2 AS answer;" in (tmp_path / "grouplake" / "sql_history").read_text()


def test_a_long_result_is_paged(roots: dict[str, str], tmp_path: Path) -> None:
    paged = tmp_path / "paged"
    with prompt(roots["east"], tmp_path, PAGER=f"cat > {paged}") as (process, terminal):
        terminal.await_text("batch 1>")
        terminal.type("SELECT value FROM generate_series(1, 500);\r")
        eventually("the pager has the rows", lambda: paged.exists() and "(500 rows)" in paged.read_text())
        terminal.await_text("batch 1>")
        terminal.type("\\q\r")
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert paged.read_text().endswith("(500 rows)\n")
