"""A store opens a table once, as long as its newest version is read."""

import shutil
from pathlib import Path

import pytest
from status_story import Story

from pipelines.alerts.rules_file import EXAMPLE, load_rules
from pipelines.alerts.run import alert_evaluator
from pipelines.runtime.errors import UsageError
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import TableStore


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(str(tmp_path / "tables"))
    story.end(9).commit(5).at(1).sample()
    return story


def test_the_newest_version_is_opened_once(story: Story) -> None:
    store = TableStore(story.root)
    first = store.at("lag", store.table("lag").version())
    story.commit(6).at(60).sample()
    second = store.at("lag", first.version() + 1)
    assert second is first
    assert store.at("lag", second.version()) is second


def test_an_earlier_version_leaves_the_newest_one_open(story: Story) -> None:
    story.commit(6).at(60).sample()
    store = TableStore(story.root)
    newest = store.table("lag")
    version = newest.version()
    earlier = store.at("lag", version - 1)
    assert (earlier.version(), store.table("lag").version()) == (version - 1, version)
    assert TableStore(story.root).at("lag", version - 1).version() == version - 1


def test_a_removed_table_is_opened_again(story: Story) -> None:
    store = TableStore(story.root)
    opened = store.table("lag")
    shutil.rmtree(story.root)
    with pytest.raises(UsageError, match="no table lag"):
        store.table("lag")
    TableStore(story.root).create()
    assert (opened.version(), store.table("lag").version()) == (1, 0)


def test_alerts_open_the_tables_of_a_batch_once(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    load = TableStore._load

    def counted(store: TableStore, name: str, version: int | None = None) -> object:
        opened.append(name)
        return load(store, name, version)

    monkeypatch.setattr(TableStore, "_load", counted)
    rules = load_rules(str(EXAMPLE))
    with alert_evaluator(
        story.root, str(tmp_path / "alerts"), rules, lambda: to_ms(story.clock()), lambda _line: None
    ) as evaluator:
        assert not evaluator.evaluate().failed_rules
        opened.clear()
        story.commit(6).at(60).sample()
        opened.clear()
        assert not evaluator.evaluate().failed_rules
    assert opened == []
