"""Times within sentences are marked with what they mean; names that only look like times are not."""

from datetime import UTC, datetime

import pytest
from markupsafe import escape

from pipelines.dashboard.formatting.times_in_text import marked_times

NOON = datetime(2026, 3, 4, 12, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("No commits on orders-3 since 10:49 UTC; billing-1 owns it.", {"10:49 UTC": "2026-03-04T10:49:00Z"}),
        ("the group has no members since 25 Feb, 18:00 UTC.", {"25 Feb, 18:00 UTC": "2026-02-25T18:00:00Z"}),
        ("open since 31 Dec 2025, 23:59 UTC", {"31 Dec 2025, 23:59 UTC": "2025-12-31T23:59:00Z"}),
        ("between 11:59:35 and 12:00:05", {"11:59:35": "2026-03-04T11:59:35Z", "12:00:05": "2026-03-04T12:00:05Z"}),
        ("data of 11:35, 25 min old: the job has stopped", {"11:35": "2026-03-04T11:35:00Z"}),
        ("since 2026-03-03 17:35: the job has stopped", {"2026-03-03 17:35": "2026-03-03T17:35:00Z"}),
        ("before 3 Mar 23:59", {"3 Mar 23:59": "2026-03-03T23:59:00Z"}),
        ("w1 on fe80::10:50 and 10:50:aa, job-10:50, v10:50-b, 27:10, 31 Feb, 10:50 UTC", {}),
        ("<b>10:50 UTC</b>", {"10:50 UTC": "2026-03-04T10:50:00Z"}),
    ],
)
def test_times_are_marked(text: str, times: dict[str, str]) -> None:
    expected = str(escape(text))
    for shown, meant in times.items():
        expected = expected.replace(shown, f'<time datetime="{meant}">{shown}</time>')
    assert marked_times(text, NOON) == expected
    assert marked_times(text, None) == escape(text)
