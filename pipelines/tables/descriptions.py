"""Descriptions of tables and views, from the text of `schemas`.

Reading commands print them. `definitions.table` has the same descriptions and much more, but takes half a second to import its
SQL parser.
"""

import re
from functools import cache

from pipelines.tables import definitions

_TABLE_COMMENT = re.compile(r"^COMMENT '((?:[^']|'')*)'$", re.MULTILINE)


@cache
def description(name: str) -> str:
    """Description of a table, as in its DDL, or of a view: the first sentence of its comment, without the full stop."""
    if name in definitions.VIEWS:
        comment = re.match(r"(?:--[^\n]*\n)*", definitions.view_text(name))
        assert comment is not None, "the pattern matches the empty text"
        text = " ".join(line.removeprefix("--").strip() for line in comment[0].splitlines())
        return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
    found = _TABLE_COMMENT.search((definitions.SCHEMAS / "tables" / f"{name}.sql").read_text())
    assert found is not None, "every table has a comment"
    return found[1].replace("''", "'")
