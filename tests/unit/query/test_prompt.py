"""Statements and commands of the prompt, without a terminal."""

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from log_builder import Log
from table_logs import applied
from two_clusters import ERA, two_clusters

from pipelines.alerts.alert_store import AlertStore
from pipelines.query.prompt.commands import COMMANDS
from pipelines.query.prompt.completion import complete
from pipelines.query.prompt.history import history_file
from pipelines.query.prompt.pager import pager
from pipelines.query.prompt.pager import show as show_paged
from pipelines.query.prompt.shell import Shell
from pipelines.query.prompt.source import SnapshotSource
from pipelines.query.prompt.steps import run_text
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.tables.descriptions import description

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return two_clusters(tmp_path_factory.mktemp("clusters"))


class Growing:
    """Tables that get a further batch, with one more committed offset, at each call."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._log = Log()
        self._cuts: list[int] = []
        self.grow()

    def grow(self) -> None:
        self._cuts.append(self._log.end)
        self._log.commit(len(self._cuts), 5, group="g")
        applied(self._log, ERA, self._cuts, str(self.root), again=False)


def printed(shell_source: SnapshotSource, text: str, **options: object) -> str:
    out = io.StringIO()
    run_text(Shell(shell_source, "table", out, **options), text)  # type: ignore[arg-type]  # options of any type
    return out.getvalue()


@pytest.fixture
def east(roots: dict[str, str]) -> SnapshotSource:
    return SnapshotSource({"": roots["east"]})


def test_statements_run_in_their_order(east: SnapshotSource) -> None:
    text = "SELECT group_id FROM groups\nORDER BY 1; -- two\nSELECT ';' AS x;"
    assert printed(east, text) == "group_id\n────────\naudit\nbilling\n(2 rows)\nx\n─\n;\n(1 row)\n"


def test_expanded_rows(east: SnapshotSource) -> None:
    sql = "SELECT group_id, 'é\n' AS text FROM groups ORDER BY 1"
    rows = "─[ row 1 ]\ngroup_id  audit\ntext      é·\n─[ row 2 ]\ngroup_id  billing\ntext      é·\n(2 rows)\n"
    assert printed(east, f"\\x\n{sql};") == f"Expanded display is on.\n{rows}"
    assert printed(east, f"{sql} \\gx\n") == rows
    assert printed(east, f"\\x on\n\\x off\n{sql};").endswith("audit     é·\nbilling   é·\n(2 rows)\n")


def test_the_last_statement_again(east: SnapshotSource) -> None:
    assert printed(east, "SELECT 1 AS x;\n\\g\n") == "x\n─\n1\n(1 row)\n" * 2


def test_timing(east: SnapshotSource) -> None:
    lines = printed(east, "\\timing\nSELECT 1 AS x;\\timing off\nSELECT 2 AS x;").splitlines()
    assert lines[0] == "Timing is on."
    assert lines[5].startswith("Time: ")
    assert lines[5].endswith(" ms")
    assert lines[6:] == ["Timing is off.", "x", "─", "2", "(1 row)"]


def test_d_lists_tables_and_views_with_descriptions(east: SnapshotSource) -> None:
    lines = printed(east, "\\d").splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == [*definitions.WRITE_ORDER, *definitions.VIEWS]
    assert any(line.endswith("table  Committed offsets, those of hidden groups included") for line in lines)


def test_d_lists_the_tables_of_alerts_where_the_folder_has_them(tmp_path: Path) -> None:
    root = two_clusters(tmp_path)["east"]
    AlertStore(root)
    source = SnapshotSource({"": root})
    lines = [line.split() for line in printed(source, "\\d").splitlines()[2:-1]]
    assert [name for name, *_ in lines] == [*definitions.WRITE_ORDER, *definitions.ALERTS, *definitions.VIEWS]
    assert printed(source, "\\d alerts").splitlines()[2].split()[:3] == ["fingerprint", "STRING", "no"]
    assert texts(source, "\\d alert_h") == ["alert_history"]


@pytest.mark.parametrize("name", [*definitions.WRITE_ORDER, *definitions.ALERTS])
def test_descriptions_are_those_of_the_ddl(name: str) -> None:
    assert description(name) == definitions.table(name).description


@pytest.mark.parametrize("name", definitions.VIEWS)
def test_views_are_described_by_a_sentence(name: str) -> None:
    assert 3 <= len(description(name).split()) <= 40
    assert not description(name).endswith(".")


@pytest.mark.parametrize("name", definitions.WRITE_ORDER)
def test_d_of_a_table_lists_its_columns(name: str, east: SnapshotSource) -> None:
    table = definitions.table(name)
    lines = printed(east, f"\\d {name}").splitlines()[2:-1]
    assert [line.split()[0] for line in lines] == table.schema.names
    assert [line.partition("  ")[2].strip().endswith(table.comments[line.split()[0]]) for line in lines] == [True] * len(lines)


def test_d_of_a_view_has_the_comments_of_its_tables(east: SnapshotSource) -> None:
    out = printed(east, "\\d committed_offsets")
    assert "committed_offset  BIGINT     no        Offset of the next record to read\n" in out


def test_watch_repeats_at_the_newest_batch(tmp_path: Path) -> None:
    tables = Growing(tmp_path)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            tables.grow()

    source = SnapshotSource({"": str(tmp_path)})
    out = printed(source, "SELECT count(*) AS n FROM offsets \\watch 5 4", sleep=sleep, now=lambda: NOON)
    assert [line for line in out.splitlines() if "every" in line] == [
        "2026-03-01 12:00:00 UTC, batch 0, every 5 s",
        "2026-03-01 12:00:00 UTC, batch 0, every 5 s",
        "2026-03-01 12:00:00 UTC, batch 0 → 1, every 5 s",
        "2026-03-01 12:00:00 UTC, batch 1, every 5 s",
    ]
    assert [line.strip() for line in out.splitlines() if line.strip().isdigit()] == ["1", "1", "2", "2"]
    assert waits == [5, 5, 5]


def test_ctrl_c_ends_a_watch_and_nothing_else(east: SnapshotSource) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    out = printed(east, "SELECT 1 AS x \\watch\nSELECT 2 AS x;", sleep=interrupted)
    assert out.splitlines()[-4:] == ["x", "─", "2", "(1 row)"]


def test_a_prompt_reads_the_newest_batch_and_a_script_its_first(tmp_path: Path) -> None:
    tables = Growing(tmp_path)
    count = "SELECT count(*) AS n FROM offsets"
    prompt, script = (SnapshotSource({"": str(tmp_path)}) for _ in range(2))
    tables.grow()
    assert printed(script, f"{count};").splitlines()[2].strip() == "1"
    assert printed(prompt, f"{count};", refreshes=True).splitlines()[2].strip() == "2"
    assert (script.label, prompt.label) == ("batch 0", "batch 1")
    out = printed(script, f"\\refresh\n{count};").splitlines()
    assert out[0].startswith(f"{tmp_path}, batch 1 of 20")
    assert out[3].strip() == "2"


def test_refresh_off_keeps_a_batch(tmp_path: Path) -> None:
    tables = Growing(tmp_path)
    source = SnapshotSource({"": str(tmp_path)})
    out = io.StringIO()
    shell = Shell(source, "table", out, refreshes=True)
    run_text(shell, "\\refresh off")
    tables.grow()
    run_text(shell, "SELECT count(*) AS n FROM offsets;")
    run_text(shell, "\\refresh on\nSELECT count(*) AS n FROM offsets;")
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines == ["Statements read batch 0.", "n", "─", "1", "(1 row)", "Statements read the newest batch.", *lines[6:]]
    assert lines[8] == "2"


def test_as_of_is_never_refreshed(roots: dict[str, str]) -> None:
    source = SnapshotSource({"": roots["east"]}, "0")
    assert printed(source, "SELECT state FROM groups;", refreshes=True).splitlines()[2:] == ["Empty", "(1 row)"]
    with pytest.raises(UsageError, match="the tables are open as of 0: start without --as-of"):
        printed(source, "\\refresh")


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("SELECT 1;\n\nSELECT nothing;", "query failed: .*nothing", "3"),
        ("\\nothing", r"unknown command \\nothing: \\\? lists the commands", "1"),
        ("\\x maybe", "invalid value 'maybe': use on or off", "1"),
        ("\\d nothing", "no table or view 'nothing'", "1"),
        ("\\d 'x", "no table or view", "1"),
        ("\\d offsets groups", r"too many arguments: \\d \[NAME\]", "1"),
        ("\\watch 2", "no statement has run yet", "1"),
        ("SELECT 1;\\watch 0", "invalid number '0'", "1"),
        ("SELECT 1;\\watch nan", "invalid number 'nan'", "1"),
        ("SELECT 1;\\watch 1 0.5", "invalid number '0.5'", "1"),
        ("SELECT 1 \\x", "no ';' between the statement 'SELECT 1' and the command", "1"),
        ("\n DROP TABLE offsets;", "only queries are allowed here", "2"),
    ],
)
def test_errors_have_the_line_of_their_step(text: str, message: str, line: str, east: SnapshotSource) -> None:
    with pytest.raises(UsageError, match=message) as found:
        printed(east, text)
    assert found.value.__notes__ == [line]


def test_q_ends_the_script(east: SnapshotSource) -> None:
    assert printed(east, "SELECT 1 AS x;\\q\nSELECT 2;") == "x\n─\n1\n(1 row)\n"


def test_help_lists_every_command(east: SnapshotSource) -> None:
    lines = printed(east, "\\?").splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(COMMANDS)


def texts(source: SnapshotSource, before: str, after: str = "") -> list[str]:
    return [candidate.text for candidate in complete(source, before, after)[1]]


def relations(beginning: str) -> list[str]:
    """Tables, then views, whose names begin so."""
    names = [*sorted(definitions.WRITE_ORDER), *sorted(definitions.VIEWS)]
    return [name for name in names if name.startswith(beginning)]


def test_completion_of_tables_and_columns(east: SnapshotSource) -> None:
    assert texts(east, "SELECT * FROM off") == relations("off")
    assert texts(east, "SELECT * FROM offsets o JOIN comm") == ["committed_offsets"]
    assert texts(east, "SELECT * FROM offsets, gro") == relations("gro")
    assert texts(east, "SELECT * FROM groups WHERE member_c") == ["member_count"]
    assert texts(east, "SELECT comm", " FROM offsets") == ["committed_offset", "commit_timestamp"]
    assert texts(east, "SELECT o.comm", " FROM offsets AS o") == ["committed_offset", "commit_timestamp"]
    assert texts(east, "SELECT x.comm", " FROM offsets AS o") == []
    assert texts(east, "SELECT expires", " FROM expiring_offsets") == ["expires_at"]
    assert "member_count" in texts(east, "SELECT member_")
    assert "o" not in texts(east, "SELECT * FROM offsets ")


def test_completion_of_words(east: SnapshotSource) -> None:
    assert texts(east, "sel") == ["select"]
    assert texts(east, "SEL") == ["SELECT"]
    assert texts(east, "SELECT cou", " FROM offsets") == ["count("]
    assert texts(east, "SELECT 'sel") == []
    assert texts(east, "SELECT 1 -- it's\n FR") == ["FROM"]
    assert texts(east, "\\t") == ["\\timing"]
    assert texts(east, "\\d expir") == ["expiring_offsets"]


def test_completion_of_clusters(roots: dict[str, str]) -> None:
    source = SnapshotSource({"east": roots["east"], "eu-west": roots["west"]})
    assert texts(source, "SELECT * FROM e") == [*relations("e"), "east."]
    assert '"eu-west".' in texts(source, "SELECT * FROM ")
    assert texts(source, 'SELECT * FROM "eu-west".quar') == ["quarantine"]
    assert texts(source, "SELECT clu", " FROM offsets") == ["cluster"]
    assert texts(source, "SELECT * FROM east.offsets WHERE clu") == []
    assert source.label == "east 1, eu-west 0"


def test_d_of_a_cluster(roots: dict[str, str]) -> None:
    source = SnapshotSource(roots)
    assert "cluster" not in printed(source, "\\d east.groups")
    assert printed(source, "\\d groups").splitlines()[2].startswith("cluster")
    with pytest.raises(UsageError, match="no table or view 'north\\.groups'"):
        printed(source, "\\d north.groups")


def test_the_history_is_the_users_own(tmp_path: Path) -> None:
    path = history_file({"XDG_STATE_HOME": str(tmp_path / "state")})
    assert path == tmp_path / "state" / "grouplake" / "sql_history"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.write_text("kept")
    assert history_file({"XDG_STATE_HOME": str(tmp_path / "state")}) == path
    assert path.read_text() == "kept"


def test_no_history_without_a_state_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert history_file({"XDG_STATE_HOME": str(tmp_path / "file")}) is None


def test_the_pager_is_that_of_the_user() -> None:
    assert pager({"PAGER": "more -f"}) == ["sh", "-c", "more -f"]
    assert pager({"PAGER": " "}) is None
    found = pager({})
    assert found is None or found[0].endswith("less")


def test_only_a_terminal_has_a_pager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    paged = tmp_path / "paged"
    monkeypatch.setenv("PAGER", f"cat > {paged}")
    long = "x\n" * 1000
    for out, expected in ((io.StringIO(), long), (Terminal(), "")):
        show_paged(long, out)
        assert out.getvalue() == expected
    assert paged.read_text() == long
    short = Terminal()
    show_paged("short\n", short)
    assert short.getvalue() == "short\n"


def test_a_reader_may_leave_the_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("PAGER", "true")
    show_paged("x\n" * 1_000_000, Terminal())
