"""`grouplake example --history`: every planted incident is in the tables, at its time and with its cause."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from shop_history import UNTIL, at, rows, shop_tables, status

from coordinator_core.health import Status
from pipelines.cli import main
from pipelines.dashboard.history.group_history import with_gaps
from pipelines.examples.history import history, incidents
from pipelines.examples.history.alert_history import NOTIFICATIONS
from pipelines.examples.history.topics import HOUR, MINUTE, SECOND
from pipelines.lag.past.status_at import group_status_at
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

#: The first test builds the tables, which takes minutes beside other work.
pytestmark = pytest.mark.long

HEALTHY = {
    *("analytics-nightly", "clickstream-sessions", "email-sender", "fraud-detection", "loyalty-points", "notifications"),
    *("price-checker", "recommendations", "search-indexer", "shipping-labels", "warehouse-sync"),
}


def alerts(rule: str, group: str) -> list[tuple[str, datetime]]:
    """Transitions of an alert to firing and resolved."""
    changes = "change IN ('firing', 'resolved')"
    found = rows(f"SELECT change, at FROM alert_history WHERE rule = '{rule}' AND group_id = '{group}' AND {changes} ORDER BY at")
    return [(row["change"], row["at"]) for row in found]


@pytest.mark.long
def test_the_tables_keep_all_rules() -> None:
    assert check(shop_tables()) == []


@pytest.mark.long
def test_the_history_ends_with_a_sample_of_its_end() -> None:
    assert history.steps() == sorted(set(history.steps()))
    (row,) = rows("SELECT max(sampled_at) AS at, min(sampled_at) AS oldest FROM lag WHERE topic = 'orders'")
    assert timedelta(0) <= row["at"] - UNTIL < timedelta(seconds=1)
    (row,) = rows("SELECT min(sampled_at) AS at FROM lag_history")
    assert row["at"] <= at(-48 * HOUR)
    (row,) = rows("SELECT max(record_timestamp) AS at FROM offset_history")
    assert row["at"] < UNTIL


@pytest.mark.parametrize("hours", [1, 6, 24, 48])
def test_a_chart_of_the_history_has_no_holes_at_any_time(hours: int) -> None:
    for end in history.steps():
        points = [{"at": at(step), "lag": 1} for step in history.steps() if end - hours * HOUR <= step <= end]
        assert with_gaps(points) == points, at(end)


def test_commits_go_on_at_the_same_rate_until_the_end() -> None:
    found = rows(
        "SELECT sum(commits) AS commits FROM offset_history WHERE group_id = 'billing' AND change = 'commit' "
        "GROUP BY batch_id ORDER BY batch_id DESC LIMIT 4"
    )
    assert [row["commits"] for row in found] == [5 * 5] * 4


def test_at_the_end_only_groups_with_an_incident_have_a_defect() -> None:
    found = {row["group_id"]: row["status"] for row in rows("SELECT group_id, status FROM group_status")}
    assert {group for group, value in found.items() if value == Status.OK} == HEALTHY
    assert {group: value for group, value in found.items() if value != Status.OK} == {
        "billing": "STOP",
        "connect-page-views-archive": "STOP",
        "inventory-audit": "WARN",
        "ledger-export": "STALL",
        "payments-ledger": "STOP",
        "report-monthly": "STOP",
    }
    assert {each.group_id for each in incidents.INCIDENTS} - HEALTHY <= found.keys()


def test_the_list_of_incidents_has_their_times() -> None:
    assert {each.name: each.begins_at(UNTIL) for each in incidents.INCIDENTS} == {
        "wrong_reset": at(incidents.RESET_AT),
        "records_lost": at(incidents.LOST_STOPPED_AT),
        "rebalance_storm": at(incidents.STORM_AT),
        "expired_offsets": at(incidents.EXPIRED_AT),
        "stuck_partition": at(incidents.STUCK_AT),
        "hanging_transaction": at(incidents.HANGING_AT),
        "expiring_offsets": at(incidents.EXPIRING_LEFT_AT),
    }


def test_kinds_of_groups() -> None:
    found = {(row["group_type"], row["protocol"]) for row in rows("SELECT DISTINCT group_type, protocol FROM groups")}
    assert {("classic", "range"), ("classic", "cooperative-sticky"), ("classic", "stream"), ("consumer", "uniform")} <= found
    static = rows("SELECT DISTINCT group_id FROM members WHERE group_instance_id IS NOT NULL")
    assert static == [{"group_id": "warehouse-sync"}]
    assert rows("SELECT topic FROM offsets WHERE group_id = 'price-checker'") != []


def test_a_stuck_partition() -> None:
    assert status("billing", at(incidents.STUCK_AT - MINUTE))["status"] == "OK"
    assert status("billing")["rule"] == "stopped"
    assert status("billing")["partition"] == incidents.STUCK_PARTITION
    lag = {row["partition"]: row for row in rows("SELECT * FROM lag WHERE group_id = 'billing'")}
    stuck = lag.pop(incidents.STUCK_PARTITION)
    assert stuck["client_id"] == incidents.STUCK_OWNER
    assert stuck["lag_seconds_low"] <= -incidents.STUCK_AT / SECOND + MINUTE / SECOND
    assert stuck["lag_seconds_high"] >= -incidents.STUCK_AT / SECOND
    assert all(row["lag_seconds"] < 120 for row in lag.values())
    assert any(row["client_id"] == incidents.STUCK_OWNER for row in lag.values())
    last = rows(
        "SELECT max(commit_timestamp) AS at FROM offset_history "
        f"WHERE group_id = 'billing' AND partition = {incidents.STUCK_PARTITION}"
    )
    assert at(incidents.STUCK_AT - MINUTE) <= last[0]["at"] < at(incidents.STUCK_AT)
    (firing,) = alerts("GroupUnhealthy", "billing")
    assert firing[0] == "firing"
    assert at(incidents.STUCK_AT) < firing[1] < at(incidents.STUCK_AT + HOUR)


def test_a_rebalance_storm() -> None:
    begin, end = at(incidents.STORM_AT), at(incidents.STORM_AT + incidents.STORM_MS)
    found = rows(f"SELECT * FROM rebalances WHERE group_id = 'search-indexer' AND recorded_at > TIMESTAMP '{at(-48 * HOUR)}'")
    assert len(found) == incidents.STORM_REBALANCES
    assert all(begin <= row["recorded_at"] < end for row in found)
    assert {row["trigger"] for row in found} == {"member_left", "member_joined"}
    changed = rows(
        "SELECT DISTINCT client_id FROM ownership WHERE group_id = 'search-indexer' AND until IS NULL "
        f"AND member_id LIKE '{incidents.STORM_MEMBER}-%'"
    )
    assert changed == [{"client_id": incidents.STORM_MEMBER}]
    assert "rebalance_storm" in status("search-indexer", at(incidents.STORM_AT + 10 * MINUTE))["rules"]
    assert status("search-indexer", at(incidents.STORM_AT - MINUTE))["status"] == "OK"
    lags = rows(
        "SELECT max(lag_seconds) AS seconds FROM lag_history WHERE group_id = 'search-indexer' AND sampled_at BETWEEN "
        f"TIMESTAMP '{begin}' AND TIMESTAMP '{end + timedelta(minutes=5)}'"
    )
    assert lags[0]["seconds"] > 12 * 60
    (firing, resolved) = alerts("RebalanceStorm", "search-indexer")
    assert begin < firing[1] < end < resolved[1]
    # a deployment of another group is no storm
    assert alerts("RebalanceStorm", "notifications") == []


def test_a_wrong_reset() -> None:
    found = rows("SELECT * FROM resets")
    assert {(row["group_id"], row["topic"], row["reset_by"], row["direction"]) for row in found} == {
        ("recommendations", "clicks", "admin", "back")
    }
    assert len(found) == 6
    assert {row["reset_at"] for row in found} == {at(incidents.RESET_AT)}
    after = status("recommendations", at(incidents.RESET_AT + 10 * MINUTE))
    assert (after["status"], "reset" in after["rules"]) == ("REWIND", True)
    moved = rows("SELECT trigger, recorded_at FROM rebalances WHERE group_id = 'recommendations' ORDER BY recorded_at")
    assert [(row["trigger"], row["recorded_at"]) for row in moved[-2:]] == [
        ("member_left", at(incidents.RESET_STOPPED_AT)),
        ("member_joined", at(incidents.RESET_STARTED_AT)),
    ]
    firing, resolved = alerts("GroupBehind", "recommendations")
    assert at(incidents.RESET_AT) < firing[1] < at(incidents.RESET_AT + 10 * MINUTE)
    assert at(incidents.RESET_CAUGHT_UP_AT - HOUR) < resolved[1] < at(incidents.RESET_CAUGHT_UP_AT + HOUR)


def test_expired_offsets() -> None:
    before = at(incidents.EXPIRED_AT - 20 * MINUTE)
    assert "offsets_expiring" in status("report-monthly", before)["rules"]
    expiring = rows("SELECT expires_at FROM expiring_offsets WHERE group_id = 'report-monthly'", before)
    assert {row["expires_at"] for row in expiring} == {at(incidents.EXPIRED_LEFT_AT) + timedelta(days=7)}
    between = at(incidents.EXPIRED_STARTED_AT - 10 * MINUTE)
    assert rows("SELECT 1 FROM groups WHERE group_id = 'report-monthly'", between) == []
    removed = rows("SELECT * FROM offset_history WHERE group_id = 'report-monthly' AND change = 'tombstone'")
    assert {row["record_timestamp"] for row in removed} == {at(incidents.EXPIRED_AT)}
    first = rows(
        "SELECT partition, min(committed_offset) AS offset, min(record_timestamp) AS at FROM offset_history "
        f"WHERE group_id = 'report-monthly' AND record_timestamp > TIMESTAMP '{between}' GROUP BY partition"
    )
    lost = {row["partition"]: row["previous_offset"] for row in removed}
    # the records of a week: 0.3 per second
    assert all(row["offset"] - lost[row["partition"]] > 100_000 for row in first)
    assert all(at(incidents.EXPIRED_STARTED_AT) <= row["at"] < at(incidents.EXPIRED_ENDED_AT) for row in first)


def test_offsets_that_expire_next() -> None:
    assert status("inventory-audit")["rule"] == "offsets_expiring"
    found = rows("SELECT DISTINCT expires_at FROM expiring_offsets WHERE group_id = 'inventory-audit'")
    assert found == [{"expires_at": at(incidents.EXPIRES_AT)}]
    assert [change for change, _ in alerts("OffsetsExpire", "inventory-audit")] == ["firing"]


def test_lost_records() -> None:
    group = "connect-page-views-archive"
    (row,) = rows(f"SELECT member_count, state FROM groups WHERE group_id = '{group}'")
    assert row == {"member_count": 0, "state": "Empty"}
    lost = "SELECT messages_lost FROM lag_by_group WHERE group_id = '{}'"
    assert rows(lost.format(group), at(incidents.LOST_FROM - MINUTE)) == [{"messages_lost": 0}]
    assert rows(lost.format(group))[0]["messages_lost"] > 100_000
    assert "data_lost" in status(group)["rules"]
    left = rows(f"SELECT recorded_at FROM rebalances WHERE group_id = '{group}' AND trigger = 'member_left' ORDER BY recorded_at")
    assert left[0]["recorded_at"] == at(incidents.LOST_STOPPED_AT)
    ((change, fired),) = alerts("RecordsLost", group)
    assert (change, fired >= at(incidents.LOST_FROM)) == ("firing", True)
    assert alerts("RetentionNear", group)[0][1] < fired


def test_a_hanging_transaction() -> None:
    pending = rows("SELECT group_id, topic, partition, producer_id, commit_timestamp FROM pending_offsets")
    assert pending == [
        {
            "group_id": "payments-ledger",
            "topic": "payments",
            "partition": incidents.HANGING_PARTITION,
            "producer_id": incidents.HANGING_PRODUCER + incidents.HANGING_PARTITION,
            "commit_timestamp": at(incidents.HANGING_AT),
        }
    ]
    for group in ("payments-ledger", "ledger-export"):
        assert "hanging_transaction" in status(group)["rules"]
        assert "hanging_transaction" not in status(group, at(incidents.HANGING_AT - MINUTE))["rules"]
        (firing,) = alerts("HangingTransaction", group)
        assert at(incidents.HANGING_AT) < firing[1] < at(incidents.HANGING_AT + 30 * MINUTE)
    blocked = rows("SELECT partition FROM lag WHERE group_id = 'ledger-export' AND blocked_by_transaction")
    assert blocked == [{"partition": incidents.HANGING_PARTITION}]


@pytest.mark.parametrize("hours", [-40, -26, -9, -2])
def test_a_past_status_is_that_which_the_sample_wrote(hours: int) -> None:
    snapshot = Snapshot.open(shop_tables()).as_of(at(hours * HOUR + 12 * MINUTE))
    written = snapshot.query("SELECT * FROM group_status ORDER BY group_id").to_pylist()
    names = [row["group_id"] for row in written]
    found = group_status_at(Snapshot.open(shop_tables()), written[0]["evaluated_at"], names).to_pylist()
    assert [(row["group_id"], row["status"], row["rule"]) for row in found] == [
        (row["group_id"], row["status"], row["rule"]) for row in written
    ]


def test_notifications_are_delivered_to_a_file() -> None:
    delivered = rows("SELECT count(*) AS n FROM alert_history WHERE change = 'delivered'")[0]["n"]
    text = Path(shop_tables(), NOTIFICATIONS).read_text(encoding="utf-8")
    decoder, documents = json.JSONDecoder(), []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:]
    assert len(documents) == delivered
    teams = {alert["labels"].get("team") for document in documents for alert in document["alerts"]}
    assert teams == {None, "payments", "discovery", "data"}
    assert rows("SELECT 1 FROM alert_history WHERE change IN ('failed', 'given_up')") == []


def test_no_row_is_later_than_the_end_of_the_history() -> None:
    for table, column in (("batches", "finished_at"), ("group_history", "record_timestamp"), ("alert_history", "at")):
        (row,) = rows(f"SELECT max({column}) AS at FROM {table}")
        assert row["at"] < UNTIL + timedelta(seconds=1), table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--until", "2026-03-04T14:00:00Z"], "name --history too"),
        (["--history", "--until", "noon"], "--until is 'noon': must be an ISO 8601 time"),
        (["--history", "--until", "0001-01-01"], "must be from 1970-03-01"),
    ],
)
def test_arguments(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", str(tmp_path / "shop"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "shop").exists()


def test_a_folder_with_files_gets_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("kept")
    assert main(["example", "--history", str(tmp_path)]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


@pytest.mark.long
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = history.steps()[:2]
    monkeypatch.setattr(history, "steps", lambda: first)
    folder = str(tmp_path / "shop")
    assert main(["example", "--history", folder, "--until", "2026-07-01T12:00:00+02:00"]) == 0
    assert capsys.readouterr().out == f"grouplake dashboard --tables {folder}\n"
    (row,) = Snapshot.open(folder).query("SELECT max(sampled_at) AS at FROM lag WHERE lag IS NOT NULL").to_pylist()
    expected = datetime(2026, 7, 1, 10, tzinfo=UTC) + timedelta(milliseconds=first[-1])
    assert timedelta(0) <= row["at"] - expected < timedelta(seconds=2)
