"""Every kind of rule on real tables: values that hold, values that do not, and values that are unknown."""

from pathlib import Path
from typing import Any

import pytest
from log_builder import TOPIC, Log, member
from sampled_topics import SampledTopics, sampled
from status_story import Story
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.alerts.observations import observe
from pipelines.alerts.rules_file import load_rules
from pipelines.alerts.states import RuleResult, labels_of, step
from pipelines.alerts.tables import RuleTables
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.runtime.timestamps import to_ms

Found = dict[tuple[str, ...], tuple[bool | None, Any]]


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Two groups with two topics each; `live` has a member, and a partition without commit."""
    log = Log()
    log.commit(0, 5, group="billing", topic="orders")
    log.commit(1, 5, group="billing", topic="orders")
    log.commit(0, 5, group="billing", topic="returns")
    log.commit(0, 9, group="reports", topic="orders")
    log.group([member()], group="live")
    log.group([member()], group="live", generation=6)
    root = str(tmp_path / "tables")
    applied(log, Era.named("4"), [], root)
    return root


class Observer:
    """Evaluates one rule on the tables, `seconds` after the last batch."""

    def __init__(self, root: str, file: Path) -> None:
        self._root = root
        self._file = file

    def __call__(self, rule: str, seconds: float = 0, every: bool = True, active: str | None = None) -> Found | None:
        """`active` is the group of the only alert of the rule, otherwise all rows are observed, or those that hold."""
        self._file.write_text(
            f'[alerts]\nreceivers = ["ops"]\n[[rules]]\nname = "Rule"\n{rule}\n'
            '[receivers.ops]\nkind = "command"\ncommand = ["true"]\n'
        )
        rules = load_rules(str(self._file), {})
        snapshot = Snapshot.open(self._root)
        now_ms = to_ms(snapshot.batch.finished_at) + round(seconds * 1000)
        alerts = (labels_of({"group": active}),) if active is not None else None if every else ()
        found = observe(rules.rules[0], RuleTables(snapshot, now_ms, rules.stale_after_ms), alerts)
        if found is None:
            return None
        return {tuple(value for _, value in labels): (each.holds, each.value) for labels, each in found.items()}


@pytest.fixture
def observed(root: str, tmp_path: Path) -> Observer:
    return Observer(root, tmp_path / "alerts.toml")


def test_lag_by_level(root: str, observed: Observer) -> None:
    sampled(root, SampledTopics(orders=9, returns="topic_authorization_failed", topic=3))
    # the sum of the known partitions is 8, and the unknown one can only add to it
    assert observed('on = "lag"\nabove = 7') == {("billing",): (True, 8.0), ("reports",): (False, 0.0)}
    assert observed('on = "lag"\nabove = 8') == {("billing",): (None, 8.0), ("reports",): (False, 0.0)}
    assert observed('on = "lag"\nbelow = 8') == {("billing",): (False, 8.0), ("reports",): (True, 0.0)}
    assert observed('on = "lag"\nbelow = 9') == {("billing",): (None, 8.0), ("reports",): (True, 0.0)}
    assert observed('on = "lag"\nabove = 3\nper = "topic"\ntopics = "orders"') == {
        ("billing", "orders"): (True, 8.0),
        ("reports", "orders"): (False, 0.0),
    }
    assert observed('on = "lag"\nabove = 3\nper = "partition"\ngroups = "bill.*"') == {
        ("billing", "0", "orders"): (True, 4.0),
        ("billing", "1", "orders"): (True, 4.0),
        ("billing", "0", "returns"): (None, None),
    }
    assert observed('on = "lag"\nabove = 7', every=False) == {("billing",): (True, 8.0)}


def test_without_samples_lag_is_unknown(observed: Observer) -> None:
    assert observed('on = "lag"\nbelow = 100') is None
    assert observed('on = "sample_age"\nabove = "1m"') == {(): (None, None)}


def test_old_samples_are_unknown(root: str, observed: Observer) -> None:
    """A job that writes batches, but no samples any more."""
    topics = SampledTopics(orders=9, returns=9, topic=3)
    sampled(root, topics)
    assert observed('on = "lag"\nabove = 7\ngroups = "billing"', seconds=599) == {("billing",): (True, 12.0)}
    assert observed('on = "lag"\nabove = 7', seconds=601) is None
    assert observed('on = "sample_age"\nabove = "5m"', seconds=601)[()][0] is True  # type: ignore[index]  # it is not None
    assert observed('on = "batch_age"\nabove = "5m"', seconds=601) == {(): (True, 601.0)}
    assert observed('on = "quarantine"\nbelow = 1', seconds=601) is None


def test_seconds_compare_the_lower_bound(root: str, observed: Observer) -> None:
    topics = SampledTopics(orders=5, returns=5, topic=3)
    sampled(root, topics)
    topics.now_ms += 60_000
    topics.ends["orders"] = 9
    sampled(root, topics)
    topics.now_ms += 60_000
    sampled(root, topics)
    assert observed('on = "lag_seconds_low"\nabove = "59s"')[("billing",)] == (True, 60.0)  # type: ignore[index]  # not None
    assert observed('on = "lag_seconds_low"\nabove = 60')[("billing",)] == (False, 60.0)  # type: ignore[index]  # not None
    # the age of the commit beyond the end is unknown
    assert observed('on = "messages_lost"\nabove = 0')[("billing",)] == (False, 0.0)  # type: ignore[index]  # not None


def test_the_retention_margin_of_a_group_at_the_end_is_no_danger(root: str, observed: Observer) -> None:
    sampled(root, SampledTopics(orders=9, returns=5, topic=3))
    assert observed('on = "retention_margin"\nbelow = "2h"\nper = "topic"') == {
        ("billing", "orders"): (None, None),
        ("billing", "returns"): (False, None),
        ("reports", "orders"): (False, None),
    }


def test_offsets_that_expire(observed: Observer) -> None:
    """Offsets of simple groups expire seven days after their commit, in 2023; those of a subscribed group never."""
    found = observed('on = "expires_in"\nbelow = "24h"')
    assert found is not None
    assert {group: holds for group, (holds, _) in found.items()} == {("billing",): True, ("reports",): True}


def test_rebalances_within_the_window(root: str, observed: Observer) -> None:
    rows = Snapshot.open(root).query("SELECT * FROM rebalances ORDER BY recorded_at").to_pylist()
    # the first generation of the group is a rebalance, too
    assert [(row["group_id"], row["from_generation"]) for row in rows] == [("live", None), ("live", 5)]
    age = (Snapshot.open(root).batch.finished_at - rows[0]["recorded_at"]).total_seconds()
    groups = ("billing", "live", "reports")
    assert observed('on = "rebalance_storm"\nabove = 0') == {(group,): (False, 0.0) for group in groups}
    # the alert of a group that has become quiet is cleared: the group is not gone
    assert observed('on = "rebalance_storm"\nabove = 0', active="live") == {("live",): (False, 0.0)}
    assert observed('on = "rebalance_storm"\nabove = 0', active="deleted") == {}
    window = f"{round(age) + 60}s"
    others = {("billing",): (False, 0.0), ("reports",): (False, 0.0)}
    assert observed(f'on = "rebalance_storm"\nabove = 1\nwindow = "{window}"') == {("live",): (True, 2.0), **others}
    assert observed(f'on = "rebalance_storm"\nabove = 2\nwindow = "{window}"') == {("live",): (False, 2.0), **others}


def test_records_in_quarantine(tmp_path: Path, observed: Observer) -> None:
    assert observed('on = "quarantine"\nabove = 0') == {(): (False, 0.0)}
    log = Log()
    log.commit(0, 5)
    log.raw(b"\x00\x01", b"?")
    root = str(tmp_path / "damaged")
    applied(log, Era.named("4"), [], root)
    damaged = Observer(root, tmp_path / "alerts.toml")
    assert damaged('on = "quarantine"\nabove = 0') == {(): (True, 1.0)}
    assert damaged('on = "quarantine"\nabove = 0\nwindow = "5m"', seconds=301) == {(): (False, 0.0)}


def test_statuses_of_groups(tmp_path: Path) -> None:
    log = Log()
    log.group([member()], group="dark")
    log.group([member(topics=("orders",))], group="stopped")
    log.commit(0, 5, group="dark")
    log.commit(0, 5, group="stopped", topic="orders")
    root = str(tmp_path / "tables")
    applied(log, Era.named("4"), [], root)
    observed = Observer(root, tmp_path / "alerts.toml")
    rule = 'on = "status"\nin = ["ERR", "STOP"]'
    # no sample yet
    assert observed(rule) is None
    sampled(root, SampledTopics(orders=9, **{TOPIC: "topic_authorization_failed"}))
    assert observed(rule) == {("dark",): (None, "UNKNOWN"), ("stopped",): (True, "STOP")}
    assert observed('on = "status"\nin = ["WARN"]') == {("dark",): (None, "UNKNOWN"), ("stopped",): (False, "STOP")}
    # groups with a finding of a rule
    assert observed(f'{rule}\nfindings = ["stopped", "skew"]')[("stopped",)] == (True, "STOP")  # type: ignore[index]  # not None
    # the name until layout 1.2
    assert observed(f'{rule}\nfindings = ["burrow_2"]')[("stopped",)] == (True, "STOP")  # type: ignore[index]  # not None
    assert observed('on = "status"\nfindings = ["skew"]') == {("dark",): (None, "UNKNOWN"), ("stopped",): (False, "STOP")}
    # only where it is named
    assert observed('on = "status"\nin = ["UNKNOWN"]\ngroups = "da.*"') == {("dark",): (True, "UNKNOWN")}
    assert observed(rule, seconds=601) is None


def test_a_query_has_any_labels(observed: Observer) -> None:
    query = 'SELECT group_id AS \\"group\\", count(*) AS value FROM offsets GROUP BY group_id'
    assert observed(f'on = "sql"\nsql = "{query}"\nabove = 2') == {("billing",): (True, 3.0), ("reports",): (False, 1.0)}
    state = "SELECT state, CAST(NULL AS STRING) AS nothing, group_id AS value FROM groups WHERE group_id = 'live'"
    assert observed(f'on = "sql"\nsql = "{state}"\nin = ["live"]') == {("Stable",): (True, "live")}
    assert labels_of({"state": "Stable", "nothing": ""}) == (("state", "Stable"),)


def test_a_query_that_no_longer_finds_a_group_clears_its_alert(observed: Observer) -> None:
    query = 'SELECT group_id AS \\"group\\", count(*) AS value FROM offsets GROUP BY group_id HAVING count(*) > 2'
    assert observed(f'on = "sql"\nsql = "{query}"\nabove = 2', active="reports") == {
        ("billing",): (True, 3.0),
        ("reports",): (False, None),
    }


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 AS number", "a query of a rule needs one column named value"),
        ('SELECT 1 AS value, 2 AS \\"a-b\\"', "the column 'a-b' of the query cannot be a label"),
        ("SELECT group_id AS value FROM groups", "the values of the query do not fit the condition"),
        ("SELECT 1 AS value UNION ALL SELECT 2", "have the same labels"),
        ("SELECT value FROM nowhere", "no table or view 'nowhere'"),
        ("SELECT nothing AS value FROM offsets", "query failed: "),
    ],
)
def test_a_query_that_is_no_rule_is_reported(query: str, message: str, observed: Observer) -> None:
    with pytest.raises(UsageError, match=message):
        observed(f'on = "sql"\nsql = "{query}"\nabove = 0')


def words(root: str, file: Path, rule: str) -> dict[str, str]:
    """Annotations of the alert of a rule that fires at the last sample."""
    file.write_text(
        f'[alerts]\nreceivers = ["ops"]\n[[rules]]\nname = "Rule"\n{rule}\n'
        '[receivers.ops]\nkind = "command"\ncommand = ["true"]\n'
    )
    rules = load_rules(str(file), {})
    snapshot = Snapshot.open(root)
    tables = RuleTables(snapshot, to_ms(snapshot.batch.finished_at), rules.stale_after_ms)
    results = [RuleResult(each.rule, observe(each, tables, ())) for each in rules.rules]
    (alert,) = step({}, results, lambda _rule, _labels: ((), ()), tables.now_ms).alerts.values()
    return dict(alert.annotations)


def test_an_alert_has_the_finding_that_fired_it(tmp_path: Path) -> None:
    """A transaction blocks the partition, so the commits on it stop."""
    story = Story(str(tmp_path / "tables"))
    story.log.group([member(topics=("orders",))], group="billing")
    story.end(9, stable=5).commit(5)
    story.at(1).sample()
    story.at(1_000).sample()
    file = tmp_path / "alerts.toml"
    blocked = "A transaction, open since 11:06 UTC at least, blocks orders-0; client on 127.0.0.1 owns it; 4 records wait."
    by_status = words(story.root, file, 'on = "status"\nin = ["STOP"]')
    assert by_status["summary"] == f"group billing is STOP: {blocked}"
    assert by_status["description"].startswith("Consumers with isolation.level=read_committed read nothing more")
    assert by_status["description"].endswith("run kafka-transactions.sh with find-hanging and abort.")
    by_symptom = words(story.root, file, 'on = "status"\nfindings = ["stopped"]\nannotations = { since = "{since}, {owner}" }')
    stopped = "No commits on orders-0 since 11:06 UTC; client on 127.0.0.1 owns it; 4 records wait."
    assert by_symptom["summary"] == f"group billing is STOP: {stopped} Cause: {blocked}"
    assert by_symptom["since"].endswith("Z, client on 127.0.0.1 owns it")
    by_lag = words(story.root, file, 'on = "lag"\nabove = 3\nper = "partition"')
    assert by_lag["summary"] == "group billing is 4 records behind"
    assert by_lag["description"].startswith(blocked)
    assert words(story.root, file, 'on = "messages_lost"\nbelow = 1').keys() == {"summary"}, "no finding of lost records"
