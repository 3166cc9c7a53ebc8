"""docs/runbook.md has each message of a running installation, each own metric, each log event and each alert of the code.

A message is listed by its beginning, with … for each value: long enough to differ from all other messages.
"""

import ast
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.alerts.rules_file import EXAMPLE
from pipelines.metrics.catalogue import METRICS
from pipelines.metrics.metric import Family

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
LISTS = runpy.run_path(str(Path(__file__).with_name("test_docs_lists.py")))
OTHER_METRICS = runpy.run_path(str(Path(__file__).with_name("test_docs_metrics.py")))["OTHERS"]

#: Code that runs in operation; demo, examples and the private brokers of tests have messages of their own.
SOURCES = (
    *("coordinator_core/sources", "pipelines/alerts"),
    *(f"pipelines/{name}" for name in ("batch", "dashboard", "job", "lag", "metrics", "otlp", "query/snapshots", "source")),
    *("pipelines/cli/commands/start.py", "pipelines/cli/failures.py", "pipelines/cli/otlp_option.py"),
    *("pipelines/runtime/cache", "pipelines/tables", "pipelines/upkeep"),
)
#: Errors that end a command with exit code 1, and progress. Usage errors (exit code 2) name value, problem and remedy.
ERRORS = {
    *(
        "TablesError",
        "DamagedTables",
        "ReplacedTables",
        "AnotherWriter",
        "GrouplakeError",
        "LogTruncated",
        "LogUnreachable",
        "RecordsDeleted",
        "DeliveryError",
    ),
    *("JarsError", "JavaError", "JvmError", "DashboardError", "MetricsServerError", "CoordinatorError"),
}
PROGRESS = {"progress", "_progress", "print_progress"}
#: Letters of a message that can be looked up by its text; others begin with what a broker or a library reports.
LEAST_LETTERS = 12


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def text_of(node: ast.expr) -> str:
    """The text of a literal, with … for each value in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "…"


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in ERRORS or name in PROGRESS:
                yield text_of(node.args[0])
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("describe_"):
            yield from (text_of(each.value) for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)


def messages() -> set[str]:
    files = [
        file for source in SOURCES for file in ((ROOT / source).rglob("*.py") if (ROOT / source).is_dir() else [ROOT / source])
    ]
    found = {re.sub(r"…+", "…", text) for file in files for text in texts(ast.parse(file.read_text(encoding="utf-8")))}
    return {" ".join(text.split()) for text in found if len(re.sub(r"[^A-Za-z]", "", text)) >= LEAST_LETTERS}


def listed_messages() -> list[str]:
    # a message may have code in it
    rows = re.findall(r"^\| (`+)(.+?)\1 \|", section("Messages"), re.MULTILINE)
    return [text.strip() for _, text in rows]


def test_every_message_is_listed() -> None:
    listed = tuple(listed_messages())
    assert sorted(text for text in messages() if not text.startswith(listed)) == []


def test_every_listed_message_exists() -> None:
    found = messages()
    assert [text for text in listed_messages() if not any(each.startswith(text) for each in found)] == []


def test_a_message_has_one_row() -> None:
    listed = listed_messages()
    assert len(listed) == len(set(listed))
    doubtful = {text: rows for text in messages() if len(rows := [row for row in listed if text.startswith(row)]) > 1}
    assert doubtful == {}


@pytest.mark.parametrize("title", ["Messages", "Alerts", "Metrics", "Log events of the coordinator"])
def test_every_row_has_a_meaning_and_an_action(title: str) -> None:
    rows = [line for line in section(title).splitlines() if line.startswith("| `")]
    assert rows
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 3, row
        assert all(cells), row


def names_in(title: str) -> list[str]:
    """Names in the first cells of a section's rows."""
    firsts = re.findall(r"^\| (`.+?`) \|", section(title), re.MULTILINE)
    return [name for first in firsts for name in re.findall(r"`([^`]+)`", first)]


def test_every_alert_is_listed() -> None:
    prometheus = (ROOT / "deploy/prometheus/grouplake-alerts.yml").read_text(encoding="utf-8")
    alerts = re.findall(r"^ +- alert: (\w+)$", prometheus, re.MULTILINE)
    rules = [rule["name"] for rule in tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))["rules"]]
    assert sorted(names_in("Alerts")) == sorted([*alerts, *rules])


def test_every_metric_is_listed() -> None:
    own = {metric.name for metric in METRICS if metric.family is Family.OWN} | OTHER_METRICS
    table = LISTS["section"]("Health and metrics").partition("| metric |")[2]
    rows = re.findall(r"^\| (`.*?) \| ", table, re.MULTILINE)
    coordinator = {f"grouplake_coordinator_{name}" for name in re.findall(r"`(\w+)(?:\{[\w,]+\})?`", " ".join(rows))}
    assert sorted(names_in("Metrics")) == sorted(own | coordinator)


def test_every_log_event_is_listed() -> None:
    listed = LISTS["section"]("Log").partition("is one of:")[2].partition("\n`group`")[0]
    assert sorted(names_in("Log events of the coordinator")) == sorted(re.findall(r"`([a-z ]+)`", listed))
