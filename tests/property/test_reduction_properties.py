"""A reduction equals the loader's result: for a range from nothing and, merged range after range, for the whole log."""

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from offset_logs import ERAS, Cuts, Key, cuts, logs, reduced, story
from reduction_merge import key_of, loaded, merged

from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era

HISTORY = ("commits", "min_offset", "rewound", "first_offset")

# Eras 3 and 4 have the complex rules; the others have few versions.
eras = st.sampled_from([*ERAS, "3", "4"])


@given(logs(), cuts, cuts, eras)
def test_merging_range_after_range_is_loading_the_whole_log(
    records: list[LogRecord], range_cuts: Cuts, chunk_cuts: Cuts, era: str
) -> None:
    assert merged(records, era, range_cuts, chunk_cuts) == loaded(records, era)


@given(logs(), cuts, eras)
def test_a_reduction_has_the_expected_effect_of_its_range(records: list[LogRecord], chunk_cuts: Cuts, era: str) -> None:
    reduction = reduced(records, era, chunk_cuts)
    expected = story(records, Era.named(era))
    by_offset = {record.offset: record for record in records}

    commits = {key_of(row): row for row in reduction.commits.to_pylist()}
    assert {k: (row["log_offset"], row["committed_offset"]) for k, row in commits.items()} == expected.standing
    assert all(row["record_timestamp"] == by_offset[row["log_offset"]].timestamp for row in commits.values())
    tombstones = {key_of(row): row for row in reduction.tombstones.to_pylist()}
    removed = {key: effects[-1][1] for key, effects in expected.effects.items() if effects[-1][0] == "removal"}
    assert {k: row["log_offset"] for k, row in tombstones.items()} == removed
    for key, row in (commits | tombstones).items():
        assert {name: row[name] for name in HISTORY} == expected.history(key)

    waiting = {(producer, key): at for producer, keys in expected.pending.items() for key, at in keys.items()}
    pending = {(row["producer_id"], key_of(row)): row for row in reduction.pending.to_pylist()}
    assert {k: (row["log_offset"], row["committed_offset"]) for k, row in pending.items()} == waiting
    markers = {row["producer_id"]: (row["log_offset"], row["type"]) for row in reduction.markers.to_pylist()}
    assert markers == expected.markers

    assert reduction.others["log_offset"].to_pylist() == expected.others
    for row in reduction.others.to_pylist():
        record = by_offset[row["log_offset"]]
        assert (row["key"], row["value"], row["producer_id"]) == (record.key, record.value, record.producer_id)
        assert (row["is_control"], row["is_transactional"]) == (record.is_control, record.is_transactional)
    learned = {(row["topic_id"], row["topic"]) for row in reduction.topic_ids.to_pylist()}
    assert learned == {(kafka_text(topic_id), topic) for topic_id, topic in expected.topic_ids}
    assert reduction.records_read == len(records)


@given(logs(), cuts, eras)
def test_group_activity_sums_up_the_groups(records: list[LogRecord], chunk_cuts: Cuts, era: str) -> None:
    reduction = reduced(records, era, chunk_cuts)
    expected = story(records, Era.named(era))

    def largest(offsets: dict[Key, int], group: str) -> int:
        return max((offset for key, offset in offsets.items() if key.group == group), default=-1)

    def rows(table: Any, group: str) -> int:
        return int(table["group_id"].to_pylist().count(group))

    groups = {key.group for key in expected.values.keys() | expected.tombstones.keys()}
    assert {row["group_id"]: row for row in reduction.group_activity.to_pylist()} == {
        group: {
            "group_id": group,
            "last_value_offset": largest(expected.values, group),
            "last_tombstone_offset": largest(expected.tombstones, group),
            "upserts": rows(reduction.commits, group),
            "pendings": rows(reduction.pending, group),
            "removals": rows(reduction.tombstones, group),
        }
        for group in groups
    }


def kafka_text(topic_id: UUID) -> str:
    """`Uuid.toString` of Kafka, by hand: base64url without padding."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    bits = topic_id.int << 4
    return "".join(alphabet[(bits >> shift) & 63] for shift in range(126, -1, -6))
