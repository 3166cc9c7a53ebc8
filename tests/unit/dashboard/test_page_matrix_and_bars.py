"""Geometry of the matrix of ages, the small multiples, the bars of batches and the stays of a client."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.pages.client.stays import MOST_STAYS_ROWS, stays_chart
from pipelines.dashboard.pages.offsets_topic.phase_bars import kind_ms, phase_chart
from pipelines.dashboard.pages.offsets_topic.small_multiples import small_multiples
from pipelines.dashboard.pages.topic.matrix import MOST_PARTITIONS, SHADES, matrix, shade
from pipelines.dashboard.pages.topic.topic_view import shade_words

END = datetime(2026, 3, 1, 12, tzinfo=UTC)
START = END - timedelta(hours=6)


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_an_older_record_has_no_lighter_shade(one: float, other: float) -> None:
    assert (shade(one) <= shade(other)) or one > other
    assert 0 <= shade(one) <= len(SHADES)


def test_every_shade_has_words() -> None:
    words = dict(shade_words())
    assert words == {0: "at the end", 1: "≤ 10 s", 2: "≤ 1 min", 3: "≤ 10 min", 4: "≤ 1 h", 5: "≤ 1 d", 6: "> 1 d"}
    assert [shade(seconds) for seconds in (0, 0.1, 60, 61, 86_401)] == [0, 1, 2, 3, 6]


def test_cells_of_the_matrix() -> None:
    found = matrix([0, 3], {"billing": {0: 0.0, 3: 4_000.0}, "mirror": {3: None}})
    assert [(group, [(cell.shade, cell.seconds) for cell in cells]) for _, group, cells in found.rows] == [
        ("billing", [(0, 0.0), (5, 4_000.0)]),
        ("mirror", [(None, None)]),
    ]
    assert found.has_text
    assert found.rows[1][2][0].x == found.columns[1][0], "a partition that a group does not read has no cell"


def test_a_wide_matrix_remains_in_its_width() -> None:
    found = matrix(range(MOST_PARTITIONS), {"g": dict.fromkeys(range(MOST_PARTITIONS), 1.0)})
    cells = found.rows[0][2]
    assert cells[-1].x + found.cell_width <= found.width
    assert all(one.x + found.cell_width < other.x for one, other in pairwise(cells))
    assert not found.has_text
    labels = [x for x, _, has_label in found.columns if has_label]
    assert all(other - one >= 20 for one, other in pairwise(labels))


def test_small_multiples_have_one_scale_and_do_not_overlap() -> None:
    series = {key: [(START, float(key)), (END, None)] for key in range(23)}
    found = small_multiples(series, START, END)
    assert found.top == 25
    assert [panel.key for panel in found.panels] == list(series)
    boxes = [(panel.x, panel.y) for panel in found.panels]
    assert len(set(boxes)) == 23
    assert all(panel.x + panel.width <= found.width + 0.1 and panel.bottom <= found.height for panel in found.panels)


def test_phases_are_stacked_by_kind() -> None:
    phases = {"read": 10, "metadata": 5, "plan": 20, "write_lag": 7, "write_offsets": 3, "compact": 4}
    # a batch that compacts the files that it wrote is no maintenance
    assert kind_ms(phases) == {"read": 15, "plan": 20, "write": 14, "maintain": 0}
    assert kind_ms({"age": 3, "thin": 1, "compact": 5, "tidy": 2}) == {"read": 0, "plan": 0, "write": 0, "maintain": 11}
    assert kind_ms({"compact": 5})["maintain"] == 5
    found = phase_chart([{"batch_id": 7, "phase_ms": phases}, {"batch_id": 6, "phase_ms": {}}])
    first, second = found.rows
    assert [bar.kind for bar in first.bars] == ["read", "plan", "write"]
    assert all(abs(one.x + one.width - other.x) <= 0.2 for one, other in pairwise(first.bars))
    assert (first.total_ms, found.top_ms) == (49, 50)
    assert (second.bars, second.end, second.total_ms) == ((), found.left, 0)


def stay(client: str, since: float | None, until: float | None, topic: str = "orders", group: str = "g") -> dict[str, Any]:
    def time(hours: float | None) -> datetime | None:
        return None if hours is None else START + timedelta(hours=hours)

    names = {"client_id": client, "client_host": "/10.0.0.1", "group_id": group, "topic": topic, "topic_id": None}
    return {**names, "since": time(since), "until": time(until)}


def test_stays_at_the_same_time_have_rows_of_their_own() -> None:
    found = stays_chart([stay("a", None, 2), stay("b", 2, None), stay("c", 1, 3), stay("a", 4, 5, "clicks")], START, END)
    assert [(row.topic, row.is_first, len(row.bars)) for row in found.rows] == [
        ("orders", True, 2),
        ("orders", False, 1),
        ("clicks", True, 1),
    ]
    first, second = found.rows[0].bars
    assert first.x == found.left
    assert first.x + first.width <= second.x
    assert round(second.x + second.width) == round(found.right - 1)
    assert first.colour == found.rows[2].bars[0].colour, "a client keeps its colour"
    assert (first.label, found.hidden) == ("a 10.0.0.1", 0)


def test_rows_that_are_left_out_are_counted() -> None:
    found = stays_chart([stay("a", 0, 1, f"t{number:02}") for number in range(MOST_STAYS_ROWS + 5)], START, END)
    assert (len(found.rows), found.hidden) == (MOST_STAYS_ROWS, 5)


@given(st.lists(st.tuples(st.floats(0, 6), st.floats(0, 6)), max_size=20))
def test_stays_of_a_row_do_not_overlap(spans: list[tuple[float, float]]) -> None:
    found = stays_chart([stay(f"c{n}", min(one), max(one)) for n, one in enumerate(spans)], START, END)
    assert (sum(len(row.bars) for row in found.rows), found.hidden) == (len(spans), 0)
    for row in found.rows:
        assert all(one.x <= other.x for one, other in pairwise(row.bars))
