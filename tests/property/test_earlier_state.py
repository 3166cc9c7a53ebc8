"""The state at an earlier batch, made from the histories of a later one, is that of the tables at the earlier batch."""

import tempfile
from collections import Counter

from deltalake import QueryBuilder
from group_lives import lives
from hypothesis import given, settings
from hypothesis import strategies as st
from log_builder import Log
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.query.earlier_state import COLUMNS, earlier_state
from pipelines.query.engine import Snapshot


@settings(max_examples=max(5, (settings.default or settings()).max_examples // 10))
@given(log=lives(commits=True, max_size=40), first=st.integers(1, 30), cuts=st.lists(st.integers(1, 40), max_size=2))
def test_histories_undo_what_they_have(log: Log, first: int, cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as root:
        store = applied(log, Era.named("4"), [first, *(first + cut for cut in cuts)], root, again=False)
        last = store.last_batch()
        assert last is not None
        earlier = store.batch_as_of(0)
        there = Snapshot(store, earlier)
        builder = QueryBuilder()
        builder.execute("CREATE SCHEMA later").read_all()
        later = Snapshot(store, last, builder=builder, schema="later")
        for name in COLUMNS:
            later.provide(name)
        for name, sql in earlier_state(later, "later", earlier).items():
            found = Counter(tuple(row.values()) for row in later.query(f"SELECT {COLUMNS[name]} FROM ({sql}) q").to_pylist())
            known = "WHERE group_type <> 'simple' OR group_id IN (SELECT group_id FROM offsets)" if name == "groups" else ""
            rows = there.query(f"SELECT {COLUMNS[name]} FROM {name} {known}").to_pylist()
            expected = Counter(tuple(row.values()) for row in rows)
            assert found == expected, name
