"""Times of commits in tables that were made from polls: intervals, in words, and unknown where no poll bounds them."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from created_tables import created_tables
from log_builder import Log
from polled_groups import PolledCluster, classic, offsets
from shop_pages import ShopPages
from table_logs import applied

from coordinator_core.group_polls.poll_fold import PollFold
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.cli.main import main
from pipelines.dashboard.pages.overview.recent_events import recent_events
from pipelines.lag.reports.lag_report import LagReport
from pipelines.query.engine import Snapshot
from pipelines.query.histories import may_be_older
from pipelines.query.poll_times import poll_note, polls_before
from pipelines.source.polled_rows import polled_rows

ERA = Era.named("4")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GROUP = "billing"
NOTE = (
    "Polled at least every 30 s: a commit or a rebalance is seen at the next poll, so it was made between two polls, "
    "and several of them are seen as one."
)


class PolledTables:
    """Tables under `root` that follow polls of a cluster. A poll takes 10 ms."""

    def __init__(self, root: str) -> None:
        self.root, self.cluster, self.fold = root, PolledCluster(), PollFold(ERA)
        self.store, self.at = created_tables(root), NOON
        self._next_offset = 0
        self.applier = BatchApplier(
            self.store, ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000, clock=lambda: self.at, interval_seconds=30
        )

    def poll(self, second: int, *, silent: tuple[str, ...] = (), **positions: int) -> None:
        """Poll at a second after noon; `positions` are the offsets of the group by topic."""
        self.at = NOON + timedelta(seconds=second)
        self.cluster.groups[GROUP] = (classic("m1"), offsets(**positions))
        asked = {group: tuple(stored.offsets) for group, stored in self.fold.groups.items()}
        poll = self.cluster.poll(asked, silent, at_ms=round(self.at.timestamp() * 1000))
        polled = self.fold.apply(poll, self._next_offset)
        self._next_offset = polled.next_offset
        self.applier.begin()
        self.applier.apply_rows(polled_rows(polled, ERA, ERA.default_retention_ms))

    def commits_after(self) -> dict[str, int | None]:
        """Topic → second after noon of the poll before its commit; None if unknown."""
        snapshot = Snapshot.open(self.root)
        commits = snapshot.query("SELECT * FROM offsets").to_pylist()
        polls = polls_before(snapshot.query, commits)
        return {
            row["topic"]: round((polls[row["log_offset"]] - NOON).total_seconds()) if row["log_offset"] in polls else None
            for row in commits
        }


@pytest.fixture(name="tables")
def polled_tables(tmp_path: Path) -> PolledTables:
    return PolledTables(str(tmp_path / "east"))


def test_a_commit_is_between_two_polls(tables: PolledTables) -> None:
    tables.poll(5, orders=10)
    assert tables.commits_after() == {"orders": None}
    tables.poll(35, orders=20, payments=3)
    assert tables.commits_after() == {"orders": 5, "payments": None}
    tables.poll(65, orders=20, payments=4)
    assert tables.commits_after() == {"orders": 5, "payments": 35}


def test_a_poll_that_a_broker_did_not_answer_bounds_nothing(tables: PolledTables) -> None:
    tables.poll(5, orders=10)
    tables.poll(35, silent=(GROUP,), orders=20)
    tables.poll(65, orders=20)
    assert tables.commits_after() == {"orders": 5}


def test_the_interval_on_pages(tables: PolledTables) -> None:
    tables.poll(5, orders=10, payments=3)
    tables.poll(35, orders=20, payments=3)
    pages = ShopPages(tables.root, clock=lambda: NOON + timedelta(seconds=36))
    text = " ".join(pages.html(f"groups/{GROUP}").text.split())
    assert NOTE in text
    assert "between 12:00:05 and 12:00:35" in text
    assert "before 12:00:05" in text
    assert "before 12:00:35" in " ".join(pages.html("groups").text.split())
    rows = {row["topic"]: (row["committed_after"], row["is_polled"]) for row in pages.json(f"groups/{GROUP}")["offsets"]}
    assert rows == {"orders": ("2026-03-01T12:00:05Z", True), "payments": (None, True)}


def test_a_group_of_the_first_complete_poll_is_older(tables: PolledTables) -> None:
    tables.poll(5, silent=("other",), orders=10)
    tables.poll(35, orders=10)
    now = tables.at + timedelta(seconds=1)
    model = ShopPages(tables.root, clock=lambda: now).json(f"groups/{GROUP}?span=1h")
    words = "First complete poll of the group; when it was created is unknown"
    assert [event["words"] for event in model["events"] if event["kind"] == "group"] == [words]
    assert recent_events(Snapshot.open(tables.root), now, timedelta(days=1))["created"]["groups"] == 0


def test_a_group_of_a_later_poll_is_new(tables: PolledTables) -> None:
    tables.cluster.groups["older"] = (classic("m1"), offsets(orders=1))
    tables.poll(5, silent=(GROUP,), orders=10)
    tables.poll(35, silent=(GROUP,), orders=10)
    tables.poll(65, orders=10)
    tables.cluster.groups["newer"] = (classic("m1"), offsets(orders=1))
    tables.poll(95, orders=10)
    snapshot = Snapshot.open(tables.root)
    found = snapshot.query(
        f"SELECT group_id FROM group_history WHERE change = 'group_created' AND NOT {may_be_older(snapshot.query)}"
    )
    # the coordinator of the other one was silent before
    assert found["group_id"].to_pylist() == ["newer"]
    assert recent_events(snapshot, tables.at + timedelta(seconds=1), timedelta(days=1))["created"]["groups"] == 1


def test_lag_prints_the_interval_and_the_reason(tables: PolledTables, capsys: pytest.CaptureFixture[str]) -> None:
    tables.poll(5, orders=10, payments=3)
    tables.poll(35, orders=20, payments=3)
    assert main(["lag", "--tables", tables.root, "--group", GROUP, "--verbose"]) == 0
    printed = capsys.readouterr()
    assert NOTE in printed.err
    cells = [line for line in printed.out.splitlines() if " orders " in line or " payments " in line]
    assert [line.partition("before")[2] for line in cells] == [" 2026-03-01T12:00:35.010Z", " 2026-03-01T12:00:05.010Z"]
    assert "after 2026-03-01T12:00:05.000Z, " in cells[0]
    assert "after" not in cells[1]


def test_tables_of_a_log_have_no_note(tmp_path: Path) -> None:
    log = Log(0)
    log.commit(0, 1)
    store = applied(log, ERA, [], str(tmp_path))
    batch = store.last_batch()
    assert batch is not None
    assert poll_note(batch) is None
    report = LagReport.of(Snapshot.open(str(tmp_path)), (), with_commits=True)
    assert "committed_before" not in report.rows.column_names
    out = StringIO()
    report.write(out, StringIO(), verbose=True)
    assert "COMMITTED" not in out.getvalue()
