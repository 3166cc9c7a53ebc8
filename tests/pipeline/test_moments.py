"""The state of a cluster at the newest batch and at earlier ones, from tables of a story."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from log_builder import member
from status_story import Story

from pipelines.dashboard.state.errors import NotLoaded, UnknownCluster
from pipelines.dashboard.state.history_state import HistoryState
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.dashboard.state.newest_state import NewestState
from pipelines.dashboard.state.query_cache import QueryCache
from pipelines.dashboard.state.recent_ages import BEFORE, TREND, ages_between
from pipelines.dashboard.state.summary_rows import summary_schema
from pipelines.metrics.settings import metrics_settings
from pipelines.metrics.site import Site
from pipelines.query.engine import Snapshot
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import RemovedState, UsageError
from pipelines.tables import definitions
from pipelines.tables.store import TableStore
from pipelines.upkeep.maintain import Maintenance, maintain

pytestmark = pytest.mark.long

SETTINGS = metrics_settings(load_configuration(None).metrics)
MEMORY = 64_000_000


class Cluster:
    """A story with the moments of its tables."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.site = Site({"east": story.root}, SETTINGS, 1, print)
        self.store = MomentStore(self.site, MEMORY)

    def moment(self, as_of: object = None) -> Moment:
        self.site.refresh()
        return self.store.moment("east", None if as_of is None else str(as_of))


def summary(moment: Moment, group: str = "billing") -> dict[str, Any]:
    (row,) = (row for row in moment.summaries().to_pylist() if row["group_id"] == group)
    found: dict[str, Any] = row
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Billing is behind by 4 of 9 and silent, then caught up, then has a member; each state has a sample."""
    made = Cluster(Story(str(tmp_path / "east")))
    story = made.story
    story.at(0).end(9).end(7, 1).commit(5).commit(7, 1)
    story.at(631).sample()
    story.at(660).commit(9)
    story.at(661).sample()
    story.at(690).log.group([member()], group="billing")
    story.at(691).sample()
    return made


def test_the_newest_moment(cluster: Cluster) -> None:
    moment = cluster.moment()
    assert (moment.cluster, moment.is_newest, moment.at) == ("east", True, moment.sampled_at)
    assert moment.batch == Snapshot.open(cluster.story.root).batch
    row = summary(moment)
    assert moment.summaries().schema == summary_schema()
    assert (row["state"], row["group_type"], row["member_count"], row["topics"]) == ("Stable", "classic", 1, ["foo", "orders"])
    # the member owns a partition of foo, which has no sample
    assert (row["partitions"], row["unknown_partitions"], row["lag"], row["lag_seconds"]) == (3, 1, 0, 0)
    assert (row["status"], row["last_commit_at"]) == ("OK", cluster.story.at(660).clock())
    assert row["last_rebalance_at"] == cluster.story.at(690).clock()
    assert [each["member_id"] for each in moment.members("billing")] == ["m1"]
    lag = [(each["topic"], each["partition"], each["lag"], each["status"]) for each in moment.lag("billing")]
    assert lag == [("foo", 0, None, "OK"), ("orders", 0, 0, "OK"), ("orders", 1, 0, "OK")]
    group = moment.group("billing")
    assert group is not None
    assert group["protocol"] == row["protocol"]
    assert moment.group("nothing") is None


def test_a_past_moment(cluster: Cluster) -> None:
    moment = cluster.moment(1)
    assert (moment.is_newest, moment.batch.batch_id, moment.at) == (False, 1, moment.batch.finished_at)
    row = summary(moment)
    assert (row["group_type"], row["state"], row["member_count"]) == ("simple", "Empty", 0)
    assert (row["partitions"], row["unknown_partitions"], row["lag"]) == (2, 0, 4)
    # partition 0 is behind for an unknown time, which the age 0 of partition 1 must not hide
    assert row["lag_seconds"] is None
    assert (row["last_commit_at"], row["last_rebalance_at"]) == (cluster.story.at(0).clock(), None)
    assert [(each["partition"], each["lag"]) for each in moment.lag("billing")] == [(0, 4), (1, 0)]
    assert moment.members("billing") == []
    assert moment.statuses(["billing"])["billing"]["rule"] == row["rule"] == "stopped"
    assert moment.query("SELECT count(*) AS n FROM members")["n"].to_pylist() == [0]


def test_a_time_is_the_newest_batch_until_then(cluster: Cluster) -> None:
    finished = cluster.moment(1).batch.finished_at
    between = finished + timedelta(milliseconds=1)
    moment = cluster.moment(between.isoformat())
    assert (moment.batch.batch_id, moment.at) == (1, between)
    later = cluster.moment("2999-01-01")
    assert later.is_newest


def test_errors(cluster: Cluster, tmp_path: Path) -> None:
    for as_of, message in (("yesterday", "invalid as_of 'yesterday'"), (99, "no batch 99"), ("2000-01-01", "no batch as of")):
        with pytest.raises(UsageError, match=message):
            cluster.moment(as_of)
    with pytest.raises(UnknownCluster, match="no cluster 'west': there are east"):
        cluster.store.moment("west")
    with pytest.raises(NotLoaded, match="cluster later is not loaded: the newest batch is being read"):
        MomentStore(Site({"later": str(tmp_path / "later")}, SETTINGS, 1, print), MEMORY).moment("later")


def vacuum(cluster: Cluster, *tables: str) -> None:
    """Remove the files of earlier versions, as `maintain` does after some time."""
    for name in tables:
        TableStore(cluster.story.root).table(name).vacuum(0, dry_run=False, enforce_retention_duration=False)


def test_statuses_and_lag_after_the_rows_of_the_sample_are_removed(cluster: Cluster) -> None:
    recorded = cluster.moment(1)
    vacuum(cluster, "lag", "group_status", "partition_status")
    computed = Cluster(cluster.story).moment(1)
    assert summary(recorded)["status"] == "STOP"
    # unknown until it is computed for the groups on the page
    assert summary(computed) == summary(recorded) | dict.fromkeys(("status", "rule", "detail", "findings"))
    for name in ("status", "rule", "findings"):
        assert computed.statuses(["billing"])["billing"][name] == recorded.statuses(["billing"])["billing"][name]
    shown = [[(row["partition"], row["lag"], row["status"]) for row in each.lag("billing")] for each in (recorded, computed)]
    assert shown[0] == shown[1] == [(0, 4, "STOP"), (1, 0, "OK")]


@pytest.mark.parametrize("behind", [1, 3, 4])
def test_the_histories_give_a_moment_whose_tables_are_removed(cluster: Cluster, behind: int) -> None:
    """Every batch, with a group that joins, moves, and gets another member; everything but the status of the summary."""
    story = cluster.story
    story.at(695).log.group([member(), member("m2", topics=())], group="billing", generation=6)
    story.commit(11).end(12).sample()
    story.at(700).log.group_tombstone("billing")
    story.batch()
    batch = Snapshot.open(story.root).batch.batch_id - behind
    kept = cluster.moment(batch)
    groups, members, lag = kept.group("billing"), kept.members("billing"), kept.lag("billing")
    assert groups is not None
    vacuum(cluster, *definitions.KEYS, *definitions.REPLACED)
    derived = Cluster(story).moment(batch)
    assert isinstance(derived.state, HistoryState)
    unknown = dict.fromkeys(("status", "rule", "detail", "findings"))
    assert derived.summaries().to_pylist() == [row | unknown for row in kept.summaries().to_pylist()]
    found = derived.group("billing")
    assert found is not None
    for name in ("group_id", "group_type", "state", "generation", "protocol", "member_count"):
        assert found[name] == groups[name]
    for name in ("member_id", "client_id"):
        assert [row[name] for row in derived.members("billing")] == [row[name] for row in members]
    shown = ("topic", "partition", "group_offset", "lag", "consumer_id", "client_id", "member_host")
    assert [[row[name] for name in shown] for row in derived.lag("billing")] == [[row[name] for name in shown] for row in lag]
    assert derived.statuses(["billing"])["billing"]["status"] == kept.statuses(["billing"])["billing"]["status"]
    assert derived.query("SELECT max(batch_id) AS newest FROM offset_history")["newest"][0].as_py() <= batch
    with pytest.raises(RemovedState, match="table offsets of batch"):
        derived.query("SELECT * FROM committed_offsets")


def test_a_moment_before_the_histories(cluster: Cluster) -> None:
    cluster.moment()
    maintain(cluster.story.root, Maintenance(1, 168, 16), cluster.story.clock() + timedelta(days=2), print)
    vacuum(cluster, *definitions.KEYS, *definitions.REPLACED)
    with pytest.raises(RemovedState, match=r"batch 1 can no longer be read: .* the histories start later"):
        cluster.moment(1)


def test_a_group_without_changes_has_its_last_stored_lag(cluster: Cluster) -> None:
    """Samples without changes store no rows; a group that is gone has none, although its history has."""
    story = cluster.story
    for minute in range(12, 19):
        story.at(60 * minute).sample()
    log = story.at(1200).log
    log.group_tombstone("billing")
    for partition in (0, 1):
        log.offset_tombstone(partition, group="billing", topic="orders")
    story.batch().at(1201).commit(1, group="other").batch()
    story.at(1202).commit(2, group="other").batch()
    last = Snapshot.open(story.root).batch.batch_id
    quiet = cluster.moment(last - 3)
    assert summary(quiet)["lag"] == 0
    assert quiet.sampled_at is not None
    gone = cluster.moment(last - 1)
    assert [row["group_id"] for row in gone.summaries().to_pylist()] == ["other"]


def test_lag_after_a_pause_of_the_samples(cluster: Cluster) -> None:
    story = cluster.story
    story.at(200_000).commit(9).batch()
    story.at(200_001).commit(9).batch()
    moment = cluster.moment(Snapshot.open(story.root).batch.batch_id - 1)
    assert (summary(moment)["lag"], moment.sampled_at) == (0, story.at(691).clock())


def test_summaries_of_the_next_batch_are_made_while_it_is_loaded(cluster: Cluster) -> None:
    cluster.moment().summaries()
    cluster.moment().recent_ages(["billing"])
    cluster.story.at(720).sample()
    cluster.site.refresh()
    state = cluster.store.moment("east").state
    assert isinstance(state, NewestState)
    assert state.has_summaries
    assert state.has_ages


def test_rebalances_of_later_batches(cluster: Cluster) -> None:
    cluster.moment().summaries()
    cluster.story.at(725).log.group([member(), member("m2")], generation=9, group="billing")
    cluster.story.sample()
    assert summary(cluster.moment())["last_rebalance_at"] == cluster.story.clock()


@pytest.mark.parametrize("minutes", [1, 30, 130])
def test_ages_of_the_last_hour_are_those_of_the_history(cluster: Cluster, minutes: int) -> None:
    groups = ["billing", "other", "unknown"]
    for number in range(4):
        cluster.story.at(730 + number * minutes * 60).end(9 + number).commit(3 + number, group="other").sample()
        moment = cluster.moment()
        found = moment.recent_ages(groups)
        queried = ages_between(moment.query, groups, moment.at - TREND - BEFORE, moment.at)
        assert found.to_pylist() == queried.to_pylist()
        assert "other" in found["group_id"].to_pylist()
    assert moment.recent_ages(["unknown"]).num_rows == 0


def test_results_are_kept_up_to_a_limit(cluster: Cluster) -> None:
    queries = QueryCache(Snapshot.open(cluster.story.root), 30)
    first = queries.query("SELECT 'x' AS name, arrow_cast('x', 'Utf8View') AS other")
    assert set(first.schema.types) == {pa.string()}
    assert queries.query("SELECT 'x' AS name, arrow_cast('x', 'Utf8View') AS other") is first
    second = queries.query("SELECT 2 AS number")
    assert queries.query("SELECT 2 AS number") is second
    assert queries.nbytes <= 30
    large = "SELECT * FROM generate_series(1, 100)"
    assert queries.query(large) is not queries.query(large)
    assert queries.nbytes <= 30


def test_many_threads(cluster: Cluster) -> None:
    """Reads of the newest and of earlier batches while new ones are written and loaded."""
    cluster.moment()

    def read(number: int) -> int:
        moment = cluster.store.moment("east", [None, "1", "3"][number % 3])
        assert moment.query("SELECT count(*) AS n FROM groups")["n"].to_pylist() == [moment.summaries().num_rows]
        assert moment.statuses(["billing"])
        return len(moment.lag("billing")) + len(moment.members("billing"))

    with ThreadPoolExecutor(8) as threads:
        reads = [threads.submit(read, number) for number in range(60)]
        for second in range(100, 104):
            cluster.story.at(second).commit(second).sample()
            cluster.site.refresh()
        assert all(future.result() for future in reads)


def test_a_failed_listener_does_not_end_the_loading(cluster: Cluster) -> None:
    reported: list[str] = []
    site = Site({"east": cluster.story.root}, SETTINGS, 1, reported.append)

    def fail(_: object) -> None:
        raise OSError("no space\nleft")

    site.on_change(fail)
    site.refresh()
    assert site.is_ready
    assert reported == ["after a new batch: OSError: no space left"]


def test_before_the_first_sample(tmp_path: Path) -> None:
    cluster = Cluster(Story(str(tmp_path / "east")))
    cluster.story.at(0).commit(5).batch()
    cluster.story.at(60).end(9).sample()
    moment = cluster.moment(0)
    assert (moment.sampled_at, summary(moment)["lag"], summary(moment)["status"]) == (None, None, None)
    assert moment.statuses(["billing"])["billing"]["status"] == "UNKNOWN"
