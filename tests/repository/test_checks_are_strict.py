"""The static checks of pyproject.toml are as strict as possible; every exception has its reason beside it."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
_TOOLS: dict[str, Any] = tomllib.loads(_PROJECT)["tool"]
#: Every ignored error, with its code and a reason after it.
_REASONED = re.compile(r"# type: ignore\[[a-z-]+(?:, [a-z-]+)*\]  # \S")


def test_no_contract_allows_indirect_imports() -> None:
    contracts = _TOOLS["importlinter"]["contracts"]
    assert len(contracts) >= 6
    assert [contract["name"] for contract in contracts if "allow_indirect_imports" in contract] == []
    assert {contract["name"]: contract["ignore_imports"] for contract in contracts if "ignore_imports" in contract} == {
        "only the wire imports the protocol library": ["coordinator_core.wire.library -> kafka"],
        "what reads tables needs none of the packages of the job and of the coordinator": [
            "grouplake -> pyspark",
            "grouplake.spark -> pyspark",
            "grouplake.spark -> py4j",
            "pipelines.group_commits.kafka_group -> confluent_kafka",
            "pipelines.group_commits.query_listener -> pyspark",
            "pipelines.group_commits.offset_commits -> pyspark",
            "grouplake.tables -> pandas",
            "pipelines.lag.inputs.counted_records -> coordinator_core.sources.record_counts",
            "pipelines.tables.writers.table_write -> pyspark",
        ],
    }


def test_mypy_is_strict_for_everything() -> None:
    settings = _TOOLS["mypy"]
    assert settings["strict"] is True
    assert {"coordinator_core", "pipelines", "tests", "benchmarks", "docs"} <= set(settings["files"])
    assert "follow_imports" not in str(settings)
    assert "ignore_errors" not in str(settings)
    for override in settings["overrides"]:
        (override_line,) = re.finditer(re.escape(f'module = ["{override["module"][0]}"'), _PROJECT)
        section = _PROJECT[: override_line.start()].rpartition("\n\n")[2]
        assert section.startswith("# "), f"no reason for the override of {override['module']}"


def test_every_ignored_error_has_its_code_and_a_reason() -> None:
    folders = ("coordinator_core", "pipelines", "tests", "benchmarks", "docs")
    ignored = [
        (path.relative_to(ROOT), line)
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
        for line in path.read_text(encoding="utf-8").splitlines()
        if "# type: ignore" in line
    ]
    assert [found for found in ignored if not _REASONED.search(found[1])] == []
