"""Readers of Delta that can be installed, each with fixed versions in an environment of its own, over all tables.

Every value is compared with that of `grouplake sql`: of the newest version, of the versions of an earlier batch, after
`grouplake maintain`, and of a stream across it. The results are in docs/readers.json, from which docs/generate_lists.py makes the
table of docs/recipes.md; with RECORD_READERS=1 (`make readers`) the test writes them.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from canonical_rows import digest
from delta_readers import DUCKDB, READERS, DeltaReader, InstalledReader, Reading
from markdown_pages import ROOT
from shop_day import day_tables
from status_story import Story

from coordinator_core.health import keep_rules
from pipelines.alerts.alert_store import AlertStore
from pipelines.query.engine import Snapshot
from pipelines.query.pinned_script import NEWEST, pinned_script
from pipelines.query.script import split
from pipelines.runtime.configuration import load_configuration
from pipelines.tables import definitions
from pipelines.tables.store import TableStore
from pipelines.upkeep.maintain import Maintenance, maintain

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.deployment]

RESULTS = ROOT / "docs" / "readers.json"


@dataclass(frozen=True)
class Compared:
    """What readers read, and the number of rows and digest of each by `grouplake sql`."""

    root: str
    earlier: int
    readings: tuple[Reading, ...]
    expected: Mapping[str, Any]


def digests(snapshot: Snapshot, kind: str) -> dict[str, Any]:
    """Key of the reading → digest by `grouplake sql`."""
    return {f"{kind}/{name}": digest(snapshot.query(f"SELECT * FROM {name}").to_pylist()) for name in snapshot.tables}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    folder = tmp_path_factory.mktemp("readers")
    root, kept = (str(folder / name) for name in ("tables", "maintained"))
    shutil.copytree(day_tables(), root)
    transition = {"at": datetime(2026, 3, 1, tzinfo=UTC), "change": "firing", "rule": "Lag", "labels": [("group", "billing")]}
    AlertStore(root).commit({}, [transition], 0)
    shutil.copytree(root, kept)
    newest = Snapshot.open(root)
    maintain(kept, Maintenance.of(load_configuration(None)), newest.batch.finished_at, lambda _line: None)
    maintained = Snapshot.open(kept)
    earlier = newest.as_of(newest.batch.batch_id // 2)
    readings = [Reading(f"newest/{name}", TableStore(root).path(name), None) for name in newest.tables]
    # no batch names the versions of `batches` and of the tables of alerts
    versions = {name: version for name, version in earlier.batch.versions.items() if name in earlier.tables}
    readings += [Reading(f"earlier/{name}", TableStore(root).path(name), version) for name, version in versions.items()]
    readings += [Reading(f"maintained/{name}", TableStore(kept).path(name), None) for name in maintained.tables]
    expected = {**digests(newest, "newest"), **digests(earlier, "earlier"), **digests(maintained, "maintained")}
    return Compared(root, earlier.batch.batch_id, tuple(readings), expected)


@dataclass(frozen=True)
class Grown:
    """Folders of the same tables before and after maintenance and a further batch, and the rows that a stream delivers: name →
    number and digest of all rows that were ever appended.
    """

    roots: tuple[str, str]
    expected: Mapping[str, Any]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    """The append-only tables with samples of two minutes, most of which maintenance removes two days later."""
    before, after = (str(tmp_path_factory.mktemp("grown") / name) for name in ("before", "after"))
    story = Story(after).end(5).commit(5).commit(7, group="other")
    for second in range(0, 120, 10):
        story.at(second).end(6 + second).sample()
    story.at(2 * 86_400).commit(9).commit(8, group="other").sample()
    shutil.copytree(after, before)
    old = Snapshot.open(before)
    maintain(after, Maintenance(1, 168, 16, keep_rules("1m:all 5m:1m")), story.clock(), lambda _line: None)
    kept = Snapshot.open(after)
    story.restart()
    story.at(2 * 86_400 + 200).commit(13).sample()
    new = Snapshot.open(after)
    expected = {}
    for name in definitions.WRITE_ORDER:
        rows = old.query(f"SELECT * FROM {name}").to_pylist()
        if definitions.KEYS.get(name) or name in definitions.REPLACED or not rows:
            continue
        added = new.query(f"SELECT * FROM {name} WHERE batch_id > {old.batch.batch_id}").to_pylist()
        expected[name] = digest([*rows, *added])
        if name in ("offset_history", "lag_history", "end_offsets"):
            assert added
            assert kept.query(f"SELECT * FROM {name}").num_rows < len(rows)
    return Grown((before, after), expected)


def summary(reader: DeltaReader, compared: Compared, found: Mapping[str, Any]) -> dict[str, Any]:
    """Tables with equal values of all tables, for each kind of reading, and reason → tables that are not equal."""
    result: dict[str, Any] = {"reader": reader.name, "versions": reader.versions}
    for kind in ("newest", "earlier", "maintained"):
        keys = [each.key for each in compared.readings if each.key.startswith(f"{kind}/")]
        result[kind] = [sum(found[key] == compared.expected[key] for key in keys), len(keys)]
    errors: dict[str, set[str]] = {}
    for key in (each.key for each in compared.readings if found[each.key] != compared.expected[each.key]):
        # messages have paths, which are others in each run
        reason = found[key].partition(":")[0] if isinstance(found[key], str) else "other values"
        errors.setdefault(reason, set()).add(key.partition("/")[2])
    result["errors"] = {reason: sorted(names) for reason, names in sorted(errors.items())}
    return result


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.label)
def test_a_reader_has_the_rows_of_ours(reader: DeltaReader, compared: Compared, grown: Grown, tmp_path: Path) -> None:
    assert min(rows for key, (rows, _) in compared.expected.items() if key.startswith("newest/offset")) > 0
    installed = InstalledReader(reader, tmp_path / "reader")
    result = summary(reader, compared, installed.read(compared.readings))
    if reader.has_streams:
        followed = installed.follow(grown.roots, tuple(grown.expected))
        equal = [name for name, expected in grown.expected.items() if followed[name] == expected]
        result["streams"] = [len(equal), len(grown.expected)]
    recorded = json.loads(RESULTS.read_text(encoding="utf-8"))
    if os.environ.get("RECORD_READERS"):
        labels = [each.label for each in READERS]
        recorded = {label: recorded.get(label) for label in labels} | {reader.label: result}
        text = json.dumps({label: value for label, value in recorded.items() if value}, indent=1, ensure_ascii=False)
        RESULTS.write_text(f"{text}\n", encoding="utf-8")
    assert recorded.get(reader.label) == result


_RUN_SCRIPTS = """
import sys

found = []
for script, names in json.loads(open(sys.argv[1]).read()):
    for statement in script:
        # the extension is loaded already, from a package: the server that INSTALL asks may be out of reach
        if statement.split()[0] not in ("INSTALL", "LOAD"):
            connection.execute(statement)
    found.append({name: digest(connection.sql(f"SELECT * FROM {name}").to_arrow_table().to_pylist()) for name in names})
print()
print(json.dumps(found))
"""


def test_the_script_for_duckdb_reads_one_batch(compared: Compared, tmp_path: Path) -> None:
    newest, earlier = Snapshot.open(compared.root), Snapshot.open(compared.root, compared.earlier)
    scripts = [pinned_script(compared.root, "duckdb", None, as_of) for as_of in (NEWEST, str(compared.earlier))]
    # within one session: the same views go to the earlier batch when only its variables are set
    variables = [step.text for step in split(scripts[1]).steps if step.text.startswith("SET VARIABLE ")]
    assert len(variables) == 2
    requests = [
        ([step.text for step in split(scripts[0]).steps], (*newest.tables, *newest.views)),
        (variables, (*earlier.tables, *earlier.views)),
        ([step.text for step in split(scripts[1]).steps], (*earlier.tables, *earlier.views)),
    ]
    found = InstalledReader(DUCKDB, tmp_path / "reader").run(_RUN_SCRIPTS, requests)
    for snapshot, results in zip((newest, earlier, earlier), found, strict=True):
        ours = {name: digest(snapshot.query(f"SELECT * FROM {name}").to_pylist()) for name in results}
        assert results == ours
    assert found[0] != found[1]
