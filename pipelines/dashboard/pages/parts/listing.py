"""Order and pages of a list whose rows are an Arrow table: sorting by a column of the query, 100 rows a page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.pages.parts.page import Query, choice
from pipelines.dashboard.path_names import decode_name, encode_name
from pipelines.dashboard.state.errors import InvalidRequest

#: Rows of a page of a list.
PAGE_ROWS = 100
_REVERSED = {"ascending": "descending", "descending": "ascending"}


@dataclass(frozen=True)
class Listing:
    """How a list is searched, sorted and paged.

    - `key`: the column with the name of a row, which is unique.
    - `sorts`: name in the query → column, and the direction in which it begins. The first one is the default.
    - `searched`: columns in which a search looks for its text.
    - `ties`: columns in descending order that decide between rows with equal values; after them the key.
    """

    key: str
    sorts: Mapping[str, tuple[str, str]]
    searched: tuple[str, ...]
    ties: tuple[str, ...] = ()

    def found(self, rows: pa.Table, query: Query) -> pa.Table:
        """The rows that the search of the query matches, in its order. Unknown values come last, as Arrow sorts by default.

        Raises:
            UsageError: an order that the list does not have.
        """
        text = query.get("q")
        if text:
            matches = [pc.fill_null(pc.match_substring(rows[name], text, ignore_case=True), False) for name in self.searched]
            rows = rows.filter(matches[0] if len(matches) == 1 else pc.or_(*matches))
        wanted = query.get("sort") or next(iter(self.sorts))
        column, direction = self.sorts[choice("sort", wanted.removeprefix("-"), list(self.sorts))]
        direction = _REVERSED[direction] if wanted.startswith("-") else direction
        ties = [*((name, "descending") for name in self.ties), (self.key, "ascending")]
        keys = [(column, direction), *(tie for tie in ties if tie[0] != column)]
        return rows.take(pc.sort_indices(rows, keys))

    def page(self, rows: pa.Table, query: Query) -> dict[str, Any]:
        """The entries of a model for one page: `found`, `rows`, and `next`, the parameter `after` of the next page.

        Raises:
            UsageError: an invalid order, or the row before the page is not in the list.
        """
        found = self.found(rows, query)
        first = self._place(found, query.get("after"))
        shown = found.slice(first, PAGE_ROWS)
        has_more = first + PAGE_ROWS < found.num_rows
        return {
            "total": rows.num_rows,
            "found": found.num_rows,
            "rows": shown.to_pylist(),
            "next": encode_name(shown[self.key][-1].as_py()) if has_more else None,
        }

    def _place(self, rows: pa.Table, after: str | None) -> int:
        if not after:
            return 0
        place: int = pc.index(rows[self.key], pa.scalar(decode_name(after), pa.string())).as_py()
        if place < 0:
            raise InvalidRequest(f"{after!r} is not in this list: begin again at its first page")
        return place + 1
