"""Lists in docs that follow from code: columns of tables, APIs and their versions, metrics and log events of the coordinator."""

import re
import runpy
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.group_coordinator.group_counts import GroupCounts
from coordinator_core.protocol.apis import APIS
from coordinator_core.service.node.merged_reports import merged_metrics
from coordinator_core.service.node.metrics import Metrics
from coordinator_core.service.node.node_report import DataPartitionReport, NodeReport
from coordinator_core.transaction_coordinator.transaction_counts import TransactionCounts

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SCRIPT: Mapping[str, Any] = runpy.run_path(str(DOCS / "generate_lists.py"))
SERVICE = (DOCS / "service.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text of a section of docs/service.md."""
    return SERVICE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("page", SCRIPT["PAGES"], ids=lambda page: str(page.name))
def test_generated_lists_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- end -->" in text
    assert SCRIPT["generated"](text) == text, "run: python docs/generate_lists.py"


def test_the_support_of_every_api_is_described() -> None:
    rows = re.findall(r"^\| ([A-Z]\w+(?:, \w+)*) \| ", SERVICE, re.MULTILINE)
    described = [name for row in rows if row != "API" for name in row.split(", ")]
    assert sorted(described) == sorted(SCRIPT["api_name"](api) for api in APIS.values())


def test_every_metric_is_listed_with_its_labels() -> None:
    metrics = Metrics()
    metrics.bind(
        lambda: NodeReport(
            GroupCounts(Counter({("classic", "Stable"): 1}), 1),
            {"orders": {"active": 1}},
            TransactionCounts(Counter({"Ongoing": 1})),
            data_partitions=(DataPartitionReport("orders", 0, 1, 1, 0, 1, 0, 1, 1),),
            failing_tasks={"log-cleaner": None},
        )
    )
    metrics.answered("HEARTBEAT", 0.1)
    metrics.errors("HEARTBEAT", ["NOT_COORDINATOR"])
    metrics.load_finished(0, 1, 1, 0, 0.1)
    # of the supervisor of several nodes
    text = metrics.text().decode() + merged_metrics({1: None}, {1: 1}).decode()
    labels: dict[str, set[str]] = {}
    for name, shown in re.findall(r"^grouplake_coordinator_(\w+?)(?:_bucket)?(?:\{(.*?)\})? ", text, re.MULTILINE):
        if not name.endswith(("_created", "_count", "_sum")):
            labels.setdefault(name, set()).update(set(re.findall(r'(\w+)="', shown)) - {"le"})
    code = [f"{name}{{{','.join(sorted(found))}}}" if found else name for name, found in labels.items()]
    table = section("Health and metrics").partition("| metric |")[2]
    listed = re.findall(r"`(\w+(?:\{[\w,]+\})?)`", " ".join(re.findall(r"^\| (`.*?) \| ", table, re.MULTILINE)))
    assert sorted(map(_sorted_labels, listed)) == sorted(code)


def _sorted_labels(metric: str) -> str:
    name, _, labels = metric.rstrip("}").partition("{")
    return f"{name}{{{','.join(sorted(labels.split(',')))}}}" if labels else name


def test_every_log_event_is_listed() -> None:
    sources = [
        ROOT / "coordinator_core/service/node/event_log.py",
        ROOT / "coordinator_core/service/node/process.py",
        ROOT / "pipelines/job/coordinator_process.py",
        ROOT / "pipelines/job/supervised_node.py",
    ]
    logged = re.compile(
        r'''(?:logging\.(?:INFO|WARNING), |log\.(?:info|warning|error)\(|_warn_repeatedly\(|level, )"([a-z ]+)"'''
    )
    code = {event for source in sources for event in logged.findall(re.sub(r"\(\s+", "(", source.read_text(encoding="utf-8")))}
    listed = set(re.findall(r"`([a-z ]+)`", section("Log").partition("is one of:")[2].partition("\n`group`")[0]))
    assert listed == code
