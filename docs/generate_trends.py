"""Writes the outcome of simulated traffic into lag.md: `PYTHONPATH=tests/support:. python docs/generate_trends.py` (minutes).

`<!-- simulated traffic -->` has the false alarms of `falls_behind` and the times to detection. The text up to `<!-- end -->` is
replaced; the rest of the page is written by hand.
"""

import re
from pathlib import Path

from simulated_traffic import PUBLISHED, outcome_table, simulate

PAGE = Path(__file__).parent / "lag.md"
_TABLE = re.compile(r"(<!-- simulated traffic -->\n).*?(<!-- end -->)", re.DOTALL)


def published() -> str:
    """The table in the page."""
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE} has no <!-- simulated traffic -->"
    return found[0]


def with_table(page: str, table: str) -> str:
    """The page with another table."""
    return _TABLE.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), outcome_table(simulate(PUBLISHED))), encoding="utf-8")
