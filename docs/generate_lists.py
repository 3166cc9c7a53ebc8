"""Writes the lists of docs that follow from code: `python docs/generate_lists.py`.

`<!-- table NAME -->` in tables.md has the columns of the DDL in schemas/tables, `<!-- apis -->` in wire.md the table of APIs,
`<!-- readers -->` in recipes.md the results in readers.json, which `make readers` measures. The text up to `<!-- end -->` is
replaced; the rest of a page is written by hand.
"""

import json
import re
from pathlib import Path

from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.apis import APIS
from coordinator_core.state.era import ERAS
from pipelines.query.column_types import type_name
from pipelines.tables import definitions

DOCS = Path(__file__).parent
PAGES = (DOCS / "tables.md", DOCS / "wire.md", DOCS / "recipes.md")
_LIST = re.compile(r"<!-- (?:table (\w+)|apis|readers) -->\n.*?<!-- end -->", re.DOTALL)


def described(name: str) -> str:
    """Description, key and columns of a table. The type of a nullable column ends with `?`."""
    table = definitions.table(name)
    if table.key:
        key = f"Key: {', '.join(f'`{column}`' for column in table.key)}."
    else:
        key = "Replaced as a whole." if name in (*definitions.REPLACED, "alerts") else "Append-only."
    rows = [
        f"| `{field.name}` | `{type_name(field.type)}`{'?' if field.nullable else ''} | {table.comments[field.name]} |"
        for field in table.schema
    ]
    return "\n".join([f"{table.description}. {key}", "", "| column | type | |", "|---|---|---|", *rows])


def api_table() -> str:
    """Every API, with the versions that can be read and written, and those that a coordinator of each era offers."""
    rows = []
    for api in APIS.values():
        versions = [api.versions.all, *(api.versions.offered(era) for era in ERAS)]
        rows.append(f"| {api_name(api)} | {api.number} | {' | '.join(map(span, versions))} |")
    return "\n".join([f"| API | key | versions | {' | '.join(ERAS)} |", f"|---|---|---|{'---|' * len(ERAS)}", *rows])


def api_name(api: AnyApi) -> str:
    """The name of an API as in Kafka's protocol guide."""
    return api.name.title().replace("_", "")


def span(versions: range) -> str:
    """Versions as "0–4", "0" or ""."""
    return "–".join(str(version) for version in dict.fromkeys((versions[0], versions[-1]))) if versions else ""


def reader_table() -> str:
    """Readers of Delta: how many of the tables have the values of `grouplake sql`."""
    columns = ("reader", "versions", "newest", "earlier batch", "after `maintain`", "stream", "not read")
    rows = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for result in json.loads((DOCS / "readers.json").read_text(encoding="utf-8")).values():
        counts = (f"{equal} of {tables}" for equal, tables in (result[kind] for kind in ("newest", "earlier", "maintained")))
        failed = ", ".join(f"`{table}`" for table in sorted({table for tables in result["errors"].values() for table in tables}))
        streams = "{} of {}".format(*result["streams"]) if "streams" in result else ""
        rows.append(f"| {result['reader']} | {', '.join(result['versions'])} | {' | '.join(counts)} | {streams} | {failed} |")
    return "\n".join(rows)


def generated(page: str) -> str:
    """The page with its lists as the code has them."""

    def made(found: re.Match[str]) -> str:
        opening = found[0].partition("\n")[0]
        lists = {"<!-- apis -->": api_table, "<!-- readers -->": reader_table}
        return f"{opening}\n{described(found[1]) if found[1] else lists[opening]()}\n<!-- end -->"

    return _LIST.sub(made, page)


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(generated(each.read_text(encoding="utf-8")), encoding="utf-8")
