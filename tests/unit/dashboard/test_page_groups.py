"""Filter, order and pages of the list of groups; links; CSV."""

import csv
import io
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.formatting.statuses import STATUSES
from pipelines.dashboard.pages.groups.group_filter import filtered, page_of, sorted_groups, status_counts
from pipelines.dashboard.pages.parts.links import Links
from pipelines.dashboard.server.table_csv import table_csv
from pipelines.runtime.errors import UsageError

GROUPS = pa.table(
    {
        "group_id": ["audit", "Billing", "billing-eu", "search"],
        "group_type": ["classic", "consumer", "consumer", "classic"],
        "state": ["Stable", "Stable", "Empty", "Stable"],
        "status": ["OK", "STOP", None, "WARN"],
        "topics": [["payments"], ["orders", "payments"], ["orders"], []],
        "lag": [3, 100, None, 50],
        "lag_seconds": [1.0, 60.0, None, 600.0],
        "member_count": pa.array([2, 3, 0, None], pa.int32()),
    }
)


def names(table: pa.Table) -> list[str]:
    found: list[str] = table["group_id"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["audit", "Billing", "billing-eu", "search"]),
        ({"q": "billing"}, ["Billing", "billing-eu"]),
        ({"q": "."}, []),
        ({"state": "Stable", "type": "classic"}, ["audit", "search"]),
        ({"status": "none"}, ["billing-eu"]),
        ({"topic": "payments"}, ["audit", "Billing"]),
        ({"topic": "payments", "status": "STOP"}, ["Billing"]),
        ({"topic": "none of them"}, []),
    ],
)
def test_filters(query: dict[str, str], found: list[str]) -> None:
    assert names(filtered(GROUPS, query)) == found


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        (None, ["Billing", "search", "billing-eu", "audit"]),
        ("-status", ["audit", "billing-eu", "search", "Billing"]),
        ("age", ["search", "Billing", "audit", "billing-eu"]),
        ("-age", ["audit", "Billing", "search", "billing-eu"]),
        ("group", ["Billing", "audit", "billing-eu", "search"]),
        ("members", ["Billing", "audit", "billing-eu", "search"]),
    ],
)
def test_orders_put_unknown_values_last(sort: str | None, found: list[str]) -> None:
    assert names(sorted_groups(GROUPS, {"sort": sort} if sort else {})) == found


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(UsageError, match="invalid sort 'colour': use one of status, age"):
        sorted_groups(GROUPS, {"sort": "colour"})


@given(st.lists(st.sampled_from(["", ".", "a/b", "~empty", "50%"]) | st.text(), min_size=1, unique=True), st.integers(1, 7))
def test_pages_have_every_group_once(ids: list[str], rows: int) -> None:
    groups = pa.table({"group_id": ids})
    seen: list[str] = []
    after: str | None = None
    while True:
        page, after = page_of(groups, after, rows)
        seen += names(page)
        if after is None:
            break
    assert seen == names(groups)


def test_a_page_after_a_group_that_is_not_listed_is_refused() -> None:
    with pytest.raises(UsageError, match="no group 'gone' in this list"):
        page_of(GROUPS, "gone")


def test_groups_are_counted_by_status_the_worst_first() -> None:
    counted = [(row["status"], row["groups"]) for row in status_counts(GROUPS)]
    assert counted == [("STOP", 1), ("WARN", 1), ("OK", 1), (None, 1)]
    assert next(iter(STATUSES)) == "REWIND"


def test_links_keep_the_time_and_encode_names() -> None:
    links = Links("east", "/c/east/groups", {"as_of": "2026-03-01 12:00:00", "q": "a"})
    assert links.to("groups", "a/b?c=<d>") == "/c/east/groups/~a~2Fb~3Fc~3D~3Cd~3E?as_of=2026-03-01+12%3A00%3A00"
    assert links.here(q=None, sort="age") == "?as_of=2026-03-01+12%3A00%3A00&sort=age"
    assert links.here(as_of=None) == "?q=a"
    assert links.here(as_of=None, q=None) == "/c/east/groups"
    assert links.file(".json") == "/c/east/groups.json?as_of=2026-03-01+12%3A00%3A00&q=a"
    assert Links("east", "/c/east/").file(".json") == "/c/east/index.json"


def test_a_group_that_is_named_like_a_file_has_a_page_of_its_own() -> None:
    assert Links("east", "/").to("groups", "report.json") == "/c/east/groups/~report~2Ejson"


def test_csv_has_no_formulas() -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    text = table_csv(pa.table({"group": ["=HYPERLINK(1)", 'a"b,c'], "lag": [-1, None], "at": [at, None]}))
    assert list(csv.reader(io.StringIO(text))) == [
        ["group", "lag", "at"],
        ["'=HYPERLINK(1)", "-1", "2026-03-01T12:00:00Z"],
        ['a"b,c', "", ""],
    ]
