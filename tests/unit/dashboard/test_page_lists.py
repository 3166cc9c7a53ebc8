"""Order, search and keyset pages of a list in columns."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.pages.parts.listing import PAGE_ROWS, Listing
from pipelines.runtime.errors import UsageError

LISTING = Listing("name", {"age": ("age", "descending"), "name": ("name", "ascending")}, ("name", "host"), ("lag",))


def rows(*values: tuple[str, str | None, float | None, int | None]) -> pa.Table:
    names = ("name", "host", "age", "lag")
    kinds = (pa.string(), pa.string(), pa.float64(), pa.int64())
    columns = list(zip(*values, strict=True)) or [()] * 4
    return pa.table({name: pa.array(column, kind) for name, column, kind in zip(names, columns, kinds, strict=True)})


SOME = rows(("b", "/10.0.0.1", 1.0, 5), ("a", None, None, None), ("c", "/10.0.0.2", 1.0, 9), ("d", "/10.0.0.1", 7.0, 0))


def names(query: dict[str, str]) -> list[str]:
    return [row["name"] for row in LISTING.page(SOME, query)["rows"]]


def test_the_first_order_is_the_default_and_unknown_values_come_last() -> None:
    assert names({}) == ["d", "c", "b", "a"]
    assert names({"sort": "-age"}) == ["c", "b", "d", "a"]
    assert names({"sort": "-name"}) == ["d", "c", "b", "a"]


def test_a_search_looks_in_all_its_columns() -> None:
    assert names({"q": "10.0.0.1"}) == ["d", "b"]
    assert names({"q": "A"}) == ["a"]
    assert names({"q": "x"}) == []
    page = LISTING.page(SOME, {"q": "a"})
    assert (page["total"], page["found"], page["next"]) == (4, 1, None)


def test_errors() -> None:
    with pytest.raises(UsageError, match="invalid sort 'colour': use one of age, name"):
        names({"sort": "colour"})
    with pytest.raises(UsageError, match="'z' is not in this list"):
        names({"after": "z"})


@given(st.integers(0, 350), st.sampled_from(["age", "-age", "name", "-name"]))
def test_pages_have_every_row_once_in_the_order_of_the_list(number: int, sort: str) -> None:
    of_rows = ["", "a/b", "~empty", *(f"n{each:03}" for each in range(number))]
    many = rows(*((of_rows[each], "h", float(each % 7) if each % 5 else None, each % 3) for each in range(number)))
    whole = LISTING.found(many, {"sort": sort})["name"].to_pylist()
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = LISTING.page(many, {"sort": sort, "after": after})
        assert len(page["rows"]) <= PAGE_ROWS
        seen += [row["name"] for row in page["rows"]]
        after = page["next"]
    assert seen == whole
    assert sorted(seen) == sorted(many["name"].to_pylist())
