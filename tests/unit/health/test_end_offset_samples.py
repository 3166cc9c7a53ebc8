"""End offset samples: validity, incarnations, folding, thinning, the search by timestamp, and small rules about inputs."""

from typing import Any

import pytest
from lag_samples import sample
from model_of_lag import count_is_due
from model_of_logs import IncarnationStart, add_sample, current_log, fold_runs, incarnations, samples_until, thin

from coordinator_core.health import DEFAULT_KEEP, EndOffsetSample, KeepRule, RecordCount, TimestampSearch, keep_rules

S30, S60, S90 = 30_000, 60_000, 90_000
HOUR = 3_600_000


def test_a_sample_is_answered_after_its_request() -> None:
    with pytest.raises(ValueError, match="sample of orders-0 answered at 4 ms, before its request"):
        sample(5, 1, answered_at_ms=4)


@pytest.mark.parametrize("values", [{"log_end": 3, "reason": "timeout"}, {"log_end": None, "reason": None}])
def test_a_sample_has_offsets_or_a_reason(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs either a log end or the reason for its absence"):
        EndOffsetSample("id", "orders", 0, 0, 1, None, **values)


def starts(*samples: EndOffsetSample) -> list[str]:
    return [incarnation.start.value for incarnation in incarnations(samples)]


def test_a_log_that_grows_is_one_incarnation() -> None:
    assert starts(sample(0, 5), sample(1, 5, 2), sample(2, None), sample(3, 9, 2, leader_epoch=4)) == ["first_sample"]
    assert starts() == []


def test_another_topic_id_is_a_recreated_topic_even_if_the_log_is_longer() -> None:
    assert starts(sample(0, 5), sample(1, 9, topic_id="new")) == ["first_sample", "recreated"]


def test_a_shorter_log_with_the_same_topic_id_is_truncated() -> None:
    assert starts(sample(0, 5), sample(1, 4), sample(2, 9)) == ["first_sample", "truncated"]


@pytest.mark.parametrize(
    ("before", "after", "start"),
    [
        ({"log_end": 5}, {"log_end": 4}, "recreated"),
        ({"log_end": 5, "log_start": 3}, {"log_end": 9, "log_start": 0}, "recreated"),
        ({"log_end": 5, "leader_epoch": 3}, {"log_end": 9, "leader_epoch": 0}, "recreated"),
        ({"log_end": 5, "leader_epoch": 3}, {"log_end": 4, "leader_epoch": 4}, "truncated"),
        ({"log_end": 5, "leader_epoch": None}, {"log_end": 4, "leader_epoch": 4}, "recreated"),
    ],
)
def test_without_topic_ids(before: dict[str, Any], after: dict[str, Any], start: str) -> None:
    assert starts(sample(0, topic_id=None, **before), sample(1, topic_id=None, **after)) == ["first_sample", start]


def test_without_topic_ids_a_new_leader_may_have_another_log_start() -> None:
    before, after = sample(0, 5, 3, topic_id=None), sample(1, 6, 2, topic_id=None, leader_epoch=4)
    assert starts(before, after) == ["first_sample"]


def test_an_upgrade_that_adds_topic_ids_is_no_new_topic() -> None:
    assert starts(sample(0, 5, topic_id=None), sample(1, 6, topic_id="new")) == ["first_sample"]


def test_failed_samples_belong_to_the_incarnation_before_them() -> None:
    samples = (sample(0, 5), sample(1, None), sample(2, 3, topic_id="new"))
    assert [len(incarnation.samples) for incarnation in incarnations(samples)] == [2, 1]
    assert incarnations(samples)[1].start is IncarnationStart.RECREATED


def test_the_current_log_begins_at_the_last_recreation_and_has_its_truncations() -> None:
    samples = (
        sample(0, 5),
        sample(1, 9, topic_id="new"),
        sample(2, 7, topic_id="new"),
        sample(3, 6, topic_id="new"),
        sample(4, None, topic_id="new"),
    )
    log = current_log(samples)
    assert log.samples == samples[1:4]
    assert log.recreated
    assert log.truncation == samples[3]
    assert current_log(()).samples == ()


def test_a_run_without_change_keeps_its_first_and_last_sample() -> None:
    run = [sample(at, 5) for at in range(0, 100, 10)]
    assert fold_runs([*run, sample(100, 6)]) == (run[0], run[-1], sample(100, 6))


@pytest.mark.parametrize("change", [{"log_start": 1}, {"last_stable": 4}, {"leader_epoch": 4}, {"topic_id": "new"}])
def test_every_value_ends_a_run(change: dict[str, Any]) -> None:
    samples = [sample(0, 5), sample(1, 5), sample(2, 5, **change), sample(3, 5, **change)]
    assert fold_runs(samples) == tuple(samples)


def test_failed_samples_fold_by_their_reason() -> None:
    failed = [sample(at, None) for at in (0, 1, 2)]
    other = [sample(at, None, reason="timeout") for at in (3, 4, 5)]
    assert fold_runs([*failed, *other]) == (failed[0], failed[2], other[0], other[2])


def test_samples_are_added_in_order() -> None:
    with pytest.raises(ValueError, match="sample answered at 11 ms after one of 15 ms"):
        add_sample((sample(5, 1),), sample(1, 1))


def test_samples_until_a_time_are_those_answered_by_then() -> None:
    samples = (sample(0, 1), sample(10, 2), sample(20, 3))
    assert samples_until(samples, 20) == samples[:2]


def test_the_default_of_lag_keep() -> None:
    assert keep_rules("1h:all 24h:1m 30d:10m") == DEFAULT_KEEP
    assert keep_rules("90s:all") == (KeepRule(S90, 0),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lag.keep is empty"),
        ("1h", "invalid duration ''"),
        ("1y:all", "invalid duration '1y'"),
        ("0h:all", "invalid duration '0h'"),
        ("1h:all 1h:1m", "ages must rise"),
        ("1h:1m 2h:all", "each distance must be a multiple"),
        ("1h:1m 2h:90s", "each distance must be a multiple"),
    ],
)
def test_invalid_values_of_lag_keep(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        keep_rules(text)


def test_thinning_by_age() -> None:
    """Samples every 30 s for three hours, of which the rules keep an hour and one in five minutes."""
    samples = tuple(sample(at, at) for at in range(0, 3 * HOUR, S30))
    kept = thin(samples, 3 * HOUR, keep_rules("1h:all 2h:5m"))
    in_last_hour = [s for s in samples if s.answered_at_ms >= 2 * HOUR]
    older_than_all = [s for s in samples if s.answered_at_ms < HOUR]
    ends_of_spans = [s for s in samples if HOUR <= s.answered_at_ms < 2 * HOUR and s.asked_at_ms % 300_000 == 270_000]
    assert kept == (*older_than_all[-1:], *ends_of_spans, *in_last_hour)
    assert (len(in_last_hour), len(ends_of_spans)) == (120, 12)


def test_thinning_keeps_the_end_of_a_folded_run() -> None:
    """The next record became readable after the last sample of the run, not after its first."""
    run = fold_runs(sample(at, 5) for at in range(0, 10 * HOUR + S90, S30))
    samples = (*run, *(sample(10 * HOUR + S90 + at, 6 + at) for at in range(0, 10 * S30, S30)))
    assert thin(samples, 20 * HOUR, keep_rules("30d:10m")) == (*run, samples[-1])


def test_thinning_keeps_both_samples_around_a_recreation() -> None:
    samples = tuple(sample(at, at, topic_id="old" if at < S60 else "new") for at in range(0, 10 * S30, S30))
    kept = thin(samples, HOUR, keep_rules("30d:10m"))
    assert kept == (*samples[:3], samples[-1])
    recent = sample(20 * 24 * HOUR, 500_000, topic_id="new")
    assert thin((*samples, recent), 40 * 24 * HOUR, keep_rules("30d:10m")) == (*samples[1:3], samples[-1], recent)


def test_samples_of_a_deleted_topic_are_removed_in_the_end() -> None:
    assert thin((sample(0, 1), sample(S30, 2)), 31 * 24 * HOUR) == ()
    assert thin((), 0) == ()


def test_an_idle_partition_keeps_the_start_of_its_run_beyond_all_rules() -> None:
    """Otherwise the age of an unread record would fall to that of the oldest kept sample."""
    run = (sample(0, 5), sample(40 * 24 * HOUR, 5))
    assert thin(run, run[-1].answered_at_ms) == run


# -- search by timestamp


def searched(timestamps: list[int], offset: int, begin: int, end: int) -> tuple[TimestampSearch, int]:
    """The search against a log with these timestamps, and the number of its rounds."""
    search, rounds = TimestampSearch(offset, begin, end), 0
    while (at := search.next_timestamp_ms) is not None:
        first = next((k for k, timestamp in enumerate(timestamps) if timestamp >= at), None)
        search, rounds = search.narrowed(at, first), rounds + 1
    return search, rounds


def test_a_search_finds_the_append_time_to_the_second_in_six_rounds() -> None:
    search, rounds = searched([10_000, 20_000, 42_345, 50_000], 2, 0, S60)
    found = search.append_time(log_append_time=True)
    assert rounds == 6
    assert found is not None
    assert found.offset == 2
    assert found.from_ms <= 42_345 < found.until_ms
    assert found.until_ms - found.from_ms <= 1_000


def test_with_create_time_the_largest_timestamp_so_far_is_found() -> None:
    """The second record is older than the first by its producer's clock, so the search gives no append time."""
    search, _ = searched([42_345, 20_000, 50_000], 1, 0, S60)
    assert search.from_ms <= 42_345 < search.until_ms
    assert search.append_time(log_append_time=False) is None


def test_a_search_that_has_not_ended_has_no_append_time() -> None:
    assert TimestampSearch(0, 0, S60).append_time(log_append_time=True) is None


def test_a_timestamp_after_all_records_narrows_from_above() -> None:
    assert TimestampSearch(0, 0, S60).narrowed(S30, None) == TimestampSearch(0, 0, S30)


# -- inputs


@pytest.mark.parametrize(
    ("lag", "unchanged", "counted", "due"),
    [
        (1, 2, None, True),
        (1_000, 2, None, True),
        (1_001, 2, None, False),
        (0, 2, None, False),
        (-1, 2, None, False),
        (None, 2, None, False),
        (1, 1, None, False),
        (1, 2, RecordCount(5, 6, 0), False),
        (1, 2, RecordCount(4, 6, 0), True),
    ],
)
def test_when_records_are_counted(lag: int | None, unchanged: int, counted: RecordCount | None, due: bool) -> None:
    assert count_is_due(lag, unchanged, counted, 5, 6) is due
