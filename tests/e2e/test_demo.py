"""The demos, run as commands: they print what the tables hold, or end with an error."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS, PATIENCE_SECONDS

from pipelines.examples.demo.fail_over.steps import GROUPS, PARTITIONS

#: The first needs no client but ours.
_WITHOUT_CONFLUENT = "sys.modules['confluent_kafka'] = None"


def demo(folder: Path, *arguments: str, before: str = "") -> str:
    """What it prints, once it has ended well."""
    command = [sys.executable, "-c", f"import sys; {before}\nfrom pipelines.cli import main; sys.exit(main())", "demo"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    ended = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=environment
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout


@pytest.mark.long
@pytest.mark.spark
def test_groups_rebalance_drain_and_expire_without_a_broker(tmp_path: Path) -> None:
    printed = demo(tmp_path, before=_WITHOUT_CONFLUENT)
    steps = dict(re.findall(r"^━━ (\S+ \S+).*?$(.*?)(?=^━━|\Z)", printed, re.MULTILINE | re.DOTALL))
    rows = {title: [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()] for title, text in steps.items()}
    assert list(rows) == [
        "Three groups",
        "billing-3 joins:",
        "search-2 crashes:",
        "nightly-report commits",
        "The retention",
        "As of",
        "All members",
    ]
    # a member that was slow to come has made another generation
    joined = {row[0]: (row[1], *row[3:]) for row in rows["Three groups"] if len(row) == 5}
    assert joined["billing"] == ("Stable", "range", "2")
    assert joined["search-index"] == ("Stable", "cooperative-sticky", "3")
    assert joined["nightly-report"] == ("Stable", "range", "1")
    assert [row[:2] for row in rows["Three groups"] if row[0].startswith("billing-")] == [["billing-1", "5"], ["billing-2", "5"]]
    assert [row[1] for row in rows["billing-3 joins:"] if row[0].startswith("billing-")] == ["4", "3", "3"]
    assert ["member_left", "search-2"] in [row[1:] for row in rows["search-2 crashes:"]]
    for title in ("nightly-report commits", "As of"):
        assert [row[:3] for row in rows[title] if row[0] == "Empty"] == [["Empty", "clicks", "0"], ["Empty", "clicks", "1"]]
    assert [row[:3] for row in rows["The retention"] if row[0] == "clicks"] == [
        ["clicks", partition, change] for change in ("commit", "tombstone") for partition in ("0", "1")
    ]
    assert "nightly-report" not in {row[0] for row in rows["The retention"]}
    assert {row[0]: row[1] for row in rows["All members"] if row[0].startswith(("billing", "crowd", "search"))} == dict.fromkeys(
        ("billing", "crowd-0", "crowd-1", "crowd-2", "search-index"), "Empty"
    )
    assert "OffsetFetch returns the same 34 committed offsets as the tables." in printed
    (kept,) = tmp_path.glob("grouplake-demo-*")
    assert f"  grouplake sql --tables {kept}/tables " in printed
    assert {"tables", "log", "coordinator.log", "job.log"} == {each.name for each in kept.iterdir()}


def test_the_error_of_a_job_that_cannot_start_ends_the_demonstration_at_once(tmp_path: Path) -> None:
    # as on a machine without Java
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PATH": str(tmp_path)}
    environment.pop("JAVA_HOME", None)
    command = [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())", "demo"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env=environment)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.splitlines()[-1].startswith("grouplake: no `java` in JAVA_HOME or PATH")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_the_groups_of_a_broker_with_real_consumers(tmp_path: Path) -> None:
    printed = demo(tmp_path, "--broker", "--tables", str(tmp_path / "kept"))
    for title in ("groups", "assignments", "rewinds", "offsets of open transactions"):
        assert f"\n{title}\n" in printed
    assert "fraud-check" in printed
    assert f"The tables are in {tmp_path / 'kept'}" in printed


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_a_node_that_is_killed_loses_no_commit(tmp_path: Path) -> None:
    printed = demo(tmp_path, "--kafka")
    rows = [line.split() for line in printed.splitlines()]
    names, *compared = [row for row in rows if row[:1] == ["group_id"] or row[1:2] in (["0"], ["1"])]
    assert len(compared) == len(GROUPS) * PARTITIONS
    found = [dict(zip(names, row, strict=True)) for row in compared]
    assert {row["group_id"] for row in found} == set(GROUPS)
    assert {row["node"] for row in found} == {"1", "2"}
    assert {row["lost"] for row in found} == {"0"}
    assert min(int(row["acknowledged"]) for row in found) > 0
    assert all(int(row["acknowledged"]) <= int(row["in_log"]) for row in found)
    assert [(row["in_log"], row["last_in_log"]) for row in found] == [(row["in_tables"], row["last_in_tables"]) for row in found]
    assert re.fullmatch(
        r"Nothing was lost: node [12] was killed, each of the [0-9,]+ acknowledged commits is in the log, "
        r"and the tables have all [0-9,]+ commits of the log\.",
        printed.splitlines()[-1],
    )
    (kept,) = tmp_path.glob("grouplake-demo-*")
    assert {"tables", "node-1.log", "node-2.log", "job.log"} <= {each.name for each in kept.iterdir()}
