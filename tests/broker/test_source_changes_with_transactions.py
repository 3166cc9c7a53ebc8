"""Tables with transactions that change their source from the log of a live broker to polls and back."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from eventually import equal_to, eventually
from group_offsets import commit_offsets
from jobs import run_job
from live_lag import LiveLag
from patience import PATIENCE_SECONDS
from poll_comparison import now_ms, polled, rows

from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.runtime.errors import UsageError
from pipelines.source.address import parse_address
from pipelines.source.transaction_log import transaction_address

pytestmark = [pytest.mark.broker, pytest.mark.long]

#: Columns of `transactions` that a poll knows; docs/sources.md names the others.
_KNOWN_TO_POLLS = "transactional_id, state, producer_id, producer_epoch, timeout_ms, partitions, start_timestamp"
_COUNTS = "sum(records) AS records, sum(commits) AS commits, sum(aborts) AS aborts"


class TransactionalTables:
    """A folder whose source changes, beside one that is read from the logs alone, and producers of three ids."""

    def __init__(self, bootstrap: str, clients: Clients, topic: str, folder: Path) -> None:
        self.bootstrap, self.topic, self._clients = bootstrap, topic, clients
        clients.create_topics([topic], 1)
        self.ids = {kind: f"{kind}-{uuid4().hex[:8]}" for kind in ("done", "fresh", "open")}
        self.producers: dict[str, Producer] = {kind: clients.transaction(name) for kind, name in self.ids.items()}
        self._members: dict[str, Consumer] = {kind: clients.consumer(name) for kind, name in self.ids.items()}
        for name in self.ids.values():
            commit_offsets(bootstrap, name, {(topic, 0): 1})
        self.log = LiveLag(bootstrap, folder / "log", transactions=True)
        self.root = folder / "tables"
        self._first = LiveLag(bootstrap, self.root, transactions=True)

    def read_first(self) -> None:
        """Read the logs into both folders."""
        self.log.sample()
        self._first.sample()

    def begin(self, kind: str, offset: int) -> None:
        """Begin a transaction with a commit of the group that has the name of the id."""
        self._clients.send_offsets(self.producers[kind], self._members[kind], [(self.topic, 0, offset)])

    def run(self, *, polls: bool, **changed: Any) -> None:
        """A run by polls, or up to the end of the logs."""
        options = {"clock_ms": now_ms, "lag_interval_seconds": 0, **changed}
        if polls:
            polled(self.bootstrap, self.root, transactions=parse_address(f"kafka-groups://{self.bootstrap}"), **options)
            return
        source = f"kafka://{self.bootstrap}/__consumer_offsets"
        transactions = transaction_address(parse_address(source), "source", "4")
        run_job(source, self.root, driver_records=1_000_000, transactions=transactions, **options)

    def states(self, *, polls: bool, **changed: Any) -> dict[str, str]:
        """States of the ids after a run."""
        self.run(polls=polls, **changed)
        found = {row["transactional_id"]: row["state"] for row in self.of("transactions", "transactional_id, state")}
        return {kind: found[name] for kind, name in self.ids.items()}

    def of(self, table: str, columns: str = "*", root: Path | str | None = None, key: str = "transactional_id") -> list[Any]:
        """Rows of the ids, or of their groups, without the ids of their batches."""
        names = ", ".join(f"'{name}'" for name in self.ids.values())
        found = rows(root or self.root, f"SELECT {columns} FROM {table} WHERE {key} IN ({names}) ORDER BY {key}")
        return [{**row, **({"batch_id": None} if "batch_id" in row else {})} for row in found]

    def differs(self) -> dict[str, tuple[list[Any], list[Any]]]:
        """Tables of state whose rows are not exactly those of the logs alone."""
        self.log.sample()
        tables = {"transactions": "transactional_id", "offsets": "group_id", "pending_offsets": "group_id"}
        both = {
            name: tuple(self.of(name, root=root, key=key) for root in (self.log.root, self.root)) for name, key in tables.items()
        }
        return {name: (log, changing) for name, (log, changing) in both.items() if log != changing}


@pytest.fixture
def tables(broker: PrivateBroker, topic: str, tmp_path: Path) -> Iterator[TransactionalTables]:
    with Clients(broker.bootstrap) as clients:
        made = TransactionalTables(broker.bootstrap, clients, topic, tmp_path)
        yield made
        made.log.close()


def test_transactions_stay_true_across_changes_of_the_source(tables: TransactionalTables) -> None:
    """One is open across both changes, one is complete before them, and one begins and ends between them."""
    tables.begin("done", 5)
    tables.producers["done"].commit_transaction(PATIENCE_SECONDS)
    tables.begin("open", 7)
    tables.read_first()
    on = {"done": "CompleteCommit", "fresh": "Empty", "open": "Ongoing"}
    eventually("the commit is complete", partial(tables.states, polls=False), equal_to(on))
    assert tables.differs() == {}
    with pytest.raises(UsageError, match="add --transactions"):
        polled(tables.bootstrap, tables.root, source_change=True)

    assert tables.states(polls=True, source_change=True) == on
    assert tables.of("transactions", _KNOWN_TO_POLLS) == tables.of("transactions", _KNOWN_TO_POLLS, tables.log.root)
    # a poll has the offset before the pending one
    assert tables.of("offsets", "committed_offset", key="group_id") == [{"committed_offset": each} for each in (5, 1, 1)]
    assert tables.of("pending_offsets", key="group_id") == []
    assert main(["check", "--tables", str(tables.root)]) == 0
    tables.begin("fresh", 9)
    tables.producers["fresh"].abort_transaction(PATIENCE_SECONDS)
    on["fresh"] = "CompleteAbort"
    eventually("the abort is complete", partial(tables.states, polls=True), equal_to(on))

    assert tables.states(polls=False, source_change=True) == on
    assert tables.differs() == {}
    assert tables.of("pending_offsets", "committed_offset", key="group_id") == [{"committed_offset": 7}]
    assert main(["check", "--tables", str(tables.root)]) == 0
    tables.producers["open"].commit_transaction(PATIENCE_SECONDS)
    on["open"] = "CompleteCommit"
    eventually("the last commit is complete", partial(tables.states, polls=False), equal_to(on))
    assert tables.differs() == {}
    assert tables.of("offsets", "committed_offset", key="group_id") == [{"committed_offset": each} for each in (5, 1, 7)]
    assert main(["check", "--tables", str(tables.root)]) == 0
    # each end of a transaction is counted once, and a change of the source is no record
    sums = f"(SELECT transactional_id, {_COUNTS} FROM transaction_history GROUP BY transactional_id)"
    counted = tables.of(sums, "transactional_id, commits, aborts")
    assert [(row["commits"], row["aborts"]) for row in counted] == [(1, 0), (0, 1), (1, 0)]
    changed = tables.of("transaction_history", "transactional_id, records")
    assert [row["records"] for row in changed].count(0) == 2 * len(tables.ids)
