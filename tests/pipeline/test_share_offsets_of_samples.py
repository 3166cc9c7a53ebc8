"""The table `share_offsets`, and what `grouplake lag` prints of share groups."""

import re
from collections.abc import Collection, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from polled_groups import classic, offsets, share
from shop_pages import ShopPages
from slow_polls import SlowPolls

from coordinator_core.group_polls.group_poll import ShareOffset
from pipelines.dashboard.security.viewer import Viewer
from pipelines.lag.reports.lag_report import LagReport
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

GROUP, OTHER = "queue", "orders-app"


def answered(partition: int, start_offset: int | None, lag: int | None) -> ShareOffset:
    return ShareOffset(GROUP, "orders", partition, start_offset, lag, None if start_offset is None else 4, None, 1_000)


class SharedQueue(SlowPolls):
    """Tables of a share group and a classic group, whose coordinators answer `answers`."""

    def __init__(self, root: Path) -> None:
        self.answers: Sequence[ShareOffset] = ()
        self.asked: list[list[str]] = []
        super().__init__(root, self._answer)
        self.cluster.groups[OTHER] = (classic("m1"), offsets(orders=90))
        self.cluster.groups[GROUP] = (share(1, "m1"), {})

    def _answer(self, groups: Collection[str]) -> Sequence[ShareOffset]:
        self.asked.append(sorted(groups))
        return self.answers

    def rows(self) -> list[dict[str, Any]]:
        found = Snapshot.open(self.root).query("SELECT * FROM share_offsets ORDER BY topic, partition").to_pylist()
        return [{name: row[name] for name in ("group_id", "partition", "start_offset", "lag", "reason")} for row in found]

    def printed(self, *, verbose: bool = False) -> str:
        """What `grouplake lag` prints of the share group, with the remarks before it."""
        out = StringIO()
        LagReport.of(Snapshot.open(self.root), [GROUP]).write(out, out, verbose=verbose)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


@pytest.fixture(name="tables")
def tables_of_a_queue(tmp_path: Path) -> SharedQueue:
    return SharedQueue(tmp_path / "east")


def test_the_rows_are_the_answers_of_the_newest_sample(tables: SharedQueue) -> None:
    tables.answers = [answered(0, 24, 0), answered(1, None, None)]
    tables.run()
    assert tables.asked == [[GROUP]]
    assert tables.rows() == [
        {"group_id": GROUP, "partition": 0, "start_offset": 24, "lag": 0, "reason": None},
        {"group_id": GROUP, "partition": 1, "start_offset": None, "lag": None, "reason": None},
    ]
    tables.answers = [answered(0, 24, 6)]
    tables.run()
    assert tables.rows() == [{"group_id": GROUP, "partition": 0, "start_offset": 24, "lag": 6, "reason": None}]
    assert check(tables.root) == []


def test_a_share_group_is_printed_as_the_tool_for_share_groups_does(tables: SharedQueue) -> None:
    tables.answers = [answered(0, 24, 6), answered(1, None, None)]
    tables.run()
    assert tables.printed() == (
        "\n"
        "GROUP           TOPIC           PARTITION  START-OFFSET  LAG\n"
        "queue           orders          0          24            6\n"
        "queue           orders          1          -             -"
    )
    assert tables.printed(verbose=True).splitlines()[2].split() == ["queue", "orders", "0", "4", "24", "6"]


def test_an_error_about_the_group_is_said(tables: SharedQueue) -> None:
    tables.answers = [ShareOffset(GROUP, None, None, None, None, None, "group_authorization_failed", 1_000)]
    tables.run()
    assert tables.printed().startswith("\nShare group 'queue': the start offset is unknown (group_authorization_failed).\n")


def test_a_deleted_share_group_leaves_no_row(tables: SharedQueue) -> None:
    tables.answers = [answered(0, 24, 6)]
    tables.run()
    del tables.cluster.groups[GROUP]
    for _ in range(2):
        tables.run()
    assert tables.rows() == []
    tables.run()
    assert tables.asked == [[GROUP], [GROUP]], "no coordinator is asked about no group"


def test_the_page_of_a_share_group_has_its_lag(tables: SharedQueue) -> None:
    tables.answers = [answered(0, 24, 6), answered(1, None, None), answered(2, 3, 9)]
    tables.run()
    pages = ShopPages(tables.root, clock=lambda: tables.now)
    text = " ".join(pages.html(f"groups/{GROUP}").text.split())
    assert "15 records not acknowledged + 1 unknown partition" in text
    assert [row["lag"] for row in pages.json(f"groups/{GROUP}")["share_offsets"]] == [6, None, 9]
    assert pages.json(f"groups/{OTHER}")["share_offsets"] == []
    pages.viewer = Viewer("somebody", re.compile(OTHER))
    assert pages.get(f"groups/{GROUP}").status_code == 404
