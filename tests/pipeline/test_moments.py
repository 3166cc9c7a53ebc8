"""The state of a cluster at the newest batch and at earlier ones, from tables of a story."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from log_builder import member
from status_story import Story

from pipelines.configuration import load_configuration
from pipelines.dashboard.moments.errors import NotLoaded, UnknownCluster
from pipelines.dashboard.moments.moment import Moment
from pipelines.dashboard.moments.moment_store import MomentStore
from pipelines.dashboard.moments.summary_rows import SUMMARY
from pipelines.errors import UsageError
from pipelines.metrics.settings import metrics_settings
from pipelines.metrics.site import Site
from pipelines.query.engine import Snapshot

SETTINGS = metrics_settings(load_configuration(None).metrics)
MEMORY = 64_000_000


class Cluster:
    """A story with the moments of its tables."""

    def __init__(self, root: Path) -> None:
        self.story = Story(str(root))
        self.site = Site({"east": str(root)}, SETTINGS, 1, print)
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
    """Billing is behind by 4 of 9, then caught up, then has a member; each state has a sample."""
    made = Cluster(tmp_path / "east")
    story = made.story
    story.at(0).end(9).end(7, 1).commit(5).commit(7, 1)
    story.at(1).sample()
    story.at(30).commit(9)
    story.at(31).sample()
    story.at(60).log.group([member()], group="billing")
    story.at(61).sample()
    return made


def test_the_newest_moment(cluster: Cluster) -> None:
    moment = cluster.moment()
    assert (moment.cluster, moment.is_newest, moment.at) == ("east", True, moment.sampled_at)
    assert moment.batch == Snapshot.open(cluster.story.root).batch
    row = summary(moment)
    assert moment.summaries().schema == SUMMARY
    assert (row["state"], row["group_type"], row["member_count"], row["topics"]) == ("Stable", "classic", 1, ["foo", "orders"])
    # the member owns a partition of foo, which has no sample
    assert (row["partitions"], row["unknown_partitions"], row["lag"], row["lag_seconds"]) == (3, 1, 0, 0)
    assert (row["status"], row["last_commit_at"]) == ("OK", cluster.story.at(30).clock())
    assert row["last_rebalance_at"] == cluster.story.at(60).clock()
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
    assert moment.statuses(["billing"])["billing"]["rule"] == row["rule"] == "burrow_2"
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
