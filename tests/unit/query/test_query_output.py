"""Query results as text: every column type of the tables in every format, and other types of SQL."""

import io
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from pipelines.query.output import WRITERS, to_stdout
from pipelines.tables import definitions

PART = pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partitions", pa.list_(pa.int32()))])
TABLE = pa.table(
    {
        "group_id": pa.array(["billing", 'say "hi", 日本\n', None]),
        "partition": pa.array([3, -1, None], pa.int32()),
        "committed_offset": pa.array([2**63 - 1, 0, None], pa.int64()),
        "is_leader": pa.array([True, False, None]),
        "user_data": pa.array([b"\x00\xff", b"", None]),
        "commit_timestamp": pa.array(
            [datetime(2026, 3, 1, 12, 0, 0, 5000, UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None],
            pa.timestamp("us", "UTC"),
        ),
        "subscribed_topics": pa.array([["a", None], [], None], pa.list_(pa.string())),
        "assigned": pa.array([[{"topic": "a", "topic_id": None, "partitions": [0, 1]}], [], None], pa.list_(PART)),
        "lag_seconds": pa.array([1.5, 0.0, None]),
        "next_offsets": pa.array([[(0, 5), (7, 9)], [], None], pa.map_(pa.int32(), pa.int64())),
    }
)

JSON = """\
{"group_id": "billing", "partition": 3, "committed_offset": 9223372036854775807, "is_leader": true, "user_data": "AP8=", \
"commit_timestamp": "2026-03-01T12:00:00.005Z", "subscribed_topics": ["a", null], \
"assigned": [{"topic": "a", "topic_id": null, "partitions": [0, 1]}], "lag_seconds": 1.5, "next_offsets": {"0": 5, "7": 9}}
{"group_id": "say \\"hi\\", 日本\\n", "partition": -1, "committed_offset": 0, "is_leader": false, "user_data": "", \
"commit_timestamp": "1969-12-31T23:59:59.999999Z", "subscribed_topics": [], "assigned": [], "lag_seconds": 0.0, \
"next_offsets": {}}
{"group_id": null, "partition": null, "committed_offset": null, "is_leader": null, "user_data": null, \
"commit_timestamp": null, "subscribed_topics": null, "assigned": null, "lag_seconds": null, "next_offsets": null}
"""

CSV = """\
group_id,partition,committed_offset,is_leader,user_data,commit_timestamp,subscribed_topics,assigned,lag_seconds,next_offsets
billing,3,9223372036854775807,true,AP8=,2026-03-01T12:00:00.005Z,"[""a"", null]",\
"[{""topic"": ""a"", ""topic_id"": null, ""partitions"": [0, 1]}]",1.5,"{""0"": 5, ""7"": 9}"
"say ""hi"", 日本
",-1,0,false,,1969-12-31T23:59:59.999999Z,[],[],0.0,{}
,,,,,,,,,
"""

LINES = """\
group_id         partition     committed_offset  is_leader  user_data  commit_timestamp             subscribed_topics
───────────────  ─────────  ───────────────────  ─────────  ─────────  ───────────────────────────  ─────────────────
billing                  3  9223372036854775807  true       AP8=       2026-03-01T12:00:00.005Z     ["a", null]
say "hi", 日本·         -1                    0  false                 1969-12-31T23:59:59.999999Z  []

(3 rows)
"""


def written(table: pa.Table, format_name: str) -> str:
    out = io.StringIO()
    WRITERS[format_name](table, out)
    return out.getvalue()


def as_json(values: Any, kind: pa.DataType | None = None) -> Any:
    return json.loads(written(pa.table({"x": pa.array([values], kind)}), "json"))["x"]


def test_json() -> None:
    assert written(TABLE, "json") == JSON


def test_csv() -> None:
    assert written(TABLE, "csv") == CSV


def test_table() -> None:
    assert written(TABLE.select(TABLE.schema.names[:7]), "table") == LINES


def test_every_column_type_of_the_tables_is_in_the_sample() -> None:
    def kinds(types: list[pa.DataType]) -> set[str]:
        inner = [t.field(i).type for t in types if pa.types.is_nested(t) for i in range(t.num_fields)]
        return {str(t) if not pa.types.is_nested(t) else type(t).__name__ for t in types} | (kinds(inner) if inner else set())

    used = [field.type for name in definitions.WRITE_ORDER for field in definitions.table(name).schema]
    assert kinds(used) <= kinds([field.type for field in TABLE.schema])


@pytest.mark.parametrize("format_name", WRITERS)
def test_no_rows(format_name: str) -> None:
    empty = written(TABLE.slice(0, 0).select(["group_id", "partition"]), format_name)
    assert (
        empty
        == {"json": "", "csv": "group_id,partition\n", "table": "group_id  partition\n────────  ─────────\n(0 rows)\n"}[
            format_name
        ]
    )


def test_long_values_are_cut_for_people_only() -> None:
    table = pa.table({"x": ["y" * 100]})
    assert written(table, "table").splitlines()[2] == "y" * 59 + "…"
    assert "y" * 100 in written(table, "csv")


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (date(2026, 3, 1), None, "2026-03-01"),
        (timedelta(seconds=90), None, 90.0),
        (datetime(2026, 3, 1), pa.timestamp("us"), "2026-03-01T00:00:00.000Z"),
        (1_000_000_001, pa.timestamp("ns"), "1970-01-01T00:00:01.000Z"),
        (datetime(2026, 3, 1, tzinfo=UTC), pa.timestamp("ms", "+02:00"), "2026-03-01T00:00:00.000Z"),
        (float("nan"), None, "NaN"),
        (1.5, None, 1.5),
        ([[1, 2], []], None, [[1, 2], []]),
        ([{"key": 1, "value": 2}], pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int32())])), [{"key": 1, "value": 2}]),
        ({"at": datetime(2026, 3, 1, tzinfo=UTC), "raw": b"x"}, None, {"at": "2026-03-01T00:00:00.000Z", "raw": "eA=="}),
    ],
)
def test_other_values(value: Any, kind: pa.DataType | None, expected: Any) -> None:
    assert as_json(value, kind) == expected


def test_columns_of_the_same_name() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["group_id", "group_id"])
    assert written(table, "json") == '{"group_id": 1, "group_id_2": 2}\n'
    assert written(table, "csv") == "group_id,group_id_2\n1,2\n"


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    to_stdout(pa.table({"x": [1]}), "table")
    assert capsys.readouterr().out == "x\n─\n1\n(1 row)\n"


def test_nanoseconds_are_cut_off_without_help_of_pandas() -> None:
    times = pa.table(
        {"at": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC")), "took": pa.array([1_500], pa.duration("ns"))}
    )
    out = io.StringIO()
    WRITERS["json"](times, out)
    assert json.loads(out.getvalue()) == {"at": "2023-11-14T22:13:20.123456Z", "took": 1e-06}
