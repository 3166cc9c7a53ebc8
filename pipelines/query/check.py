"""`grouplake check`: consistency of the tables with each other and with the last batch.

Every rule is a query that selects the violations. Its name begins with the table of which it selects rows, so a table without
files violates none of its rules and is not read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from pipelines.query.engine import Snapshot, batch_at
from pipelines.tables import definitions
from pipelines.tables.store import TableStore


@dataclass(frozen=True)
class Violation:
    """A violated rule, with the number of violations and an example."""

    rule: str
    count: int
    example: str


def _unique(table: str) -> tuple[str, str]:
    key = ", ".join(definitions.KEYS[table])
    return f"{table}: one row per {key}", f"SELECT {key}, count(*) AS n FROM {table} GROUP BY {key} HAVING count(*) > 1"


def _not_complete(table: str) -> tuple[str, str]:
    """`{last}` stands for the last batch: with a number, files whose statistics end before it are not read."""
    rule = f"{table}: no row of a batch that is not complete"
    return rule, f"SELECT batch_id, {{last}} AS last FROM {table} WHERE batch_id > {{last}}"


_WITH_POSITION = (
    "offsets",
    "pending_offsets",
    "group_records",
    "groups",
    "members",
    "offset_history",
    "group_history",
    "membership_history",
    "ownership_history",
    "quarantine",
)
#: Rules about tables that earlier versions of Grouplake did not write, and rows of both logs.
TRANSACTION_RULES: dict[str, str] = {
    **dict([_unique("transactions")]),
    "transactions: a producer id belongs to one transactional id": """
        SELECT producer_id, count(*) AS n FROM transactions GROUP BY producer_id HAVING count(*) > 1""",
    "transactions: every id is as in its newest row of transaction_history": """
        SELECT t.transactional_id, t.log_offset, h.log_offset AS newest FROM transactions t JOIN (
          SELECT transactional_id, log_partition, log_offset,
                 row_number() OVER (PARTITION BY transactional_id ORDER BY batch_id DESC, log_offset DESC) AS age
          FROM transaction_history WHERE state <> 'Elsewhere'
        ) h ON h.transactional_id = t.transactional_id
        WHERE h.age = 1 AND (h.log_offset <> t.log_offset OR h.log_partition <> t.log_partition)""",
    # a coordinator logs Complete* when every partition has its marker; a minute for clocks of two brokers
    "pending_offsets: no offset waits for a transaction that is complete": """
        SELECT p.group_id, p.topic, p.partition, t.transactional_id, t.state FROM pending_offsets p
        JOIN transactions t ON t.producer_id = p.producer_id
        JOIN (
          SELECT log_partition, max(record_timestamp) AS read_until FROM offsets GROUP BY log_partition
        ) o ON o.log_partition = p.log_partition
        WHERE t.state IN ('CompleteCommit', 'CompleteAbort')
          AND p.record_timestamp < t.record_timestamp - INTERVAL '1 minute'
          AND o.read_until > t.record_timestamp + INTERVAL '1 minute'
          AND (SELECT max(era) FROM batches) = '4'""",
    **dict(map(_not_complete, definitions.FROM_TRANSACTIONS)),
}

RULES: dict[str, str] = {
    **dict(_unique(table) for table in definitions.KEYS if table not in definitions.FROM_TRANSACTIONS),
    "groups: member_count counts the rows of members": """
        SELECT g.group_id, g.member_count, count(m.member_id) AS n FROM groups g
        LEFT JOIN members m ON m.group_id = g.group_id
        GROUP BY g.group_id, g.member_count HAVING g.member_count <> count(m.member_id)""",
    "members: every member has its group": """
        SELECT m.group_id, m.member_id FROM members m LEFT JOIN groups g ON g.group_id = m.group_id WHERE g.group_id IS NULL""",
    "group_records: every record has its group": """
        SELECT r.group_id, r.record_type FROM group_records r LEFT JOIN groups g ON g.group_id = r.group_id
        WHERE g.group_id IS NULL""",
    "groups: a leader is a member": """
        SELECT g.group_id, g.leader FROM groups g LEFT JOIN members m ON m.group_id = g.group_id AND m.member_id = g.leader
        WHERE g.group_type = 'classic' AND g.leader IS NOT NULL AND g.member_count > 0 AND m.member_id IS NULL""",
    "batches: one row per batch_id": "SELECT batch_id, count(*) AS n FROM batches GROUP BY batch_id HAVING count(*) > 1",
    **dict(map(_not_complete, _WITH_POSITION)),
}


#: Table of samples → its key. A rule about such a table holds for batches that have the table.
_KEYS_OF_SAMPLES = {
    "lag": "group_id, topic, partition",
    "end_offsets": "topic, partition, answered_at",
    "lag_history": "group_id, topic, sampled_at",
    "group_status": "group_id",
    "partition_status": "group_id, topic, partition",
    "share_offsets": "group_id, topic, partition",
}
SAMPLE_RULES: dict[str, str] = {
    **{
        f"{table}: one row per {key}": f"SELECT {key}, count(*) AS n FROM {table} GROUP BY {key} HAVING count(*) > 1"
        for table, key in _KEYS_OF_SAMPLES.items()
    },
    **dict(map(_not_complete, _KEYS_OF_SAMPLES)),
    "partition_status: every row has its group in group_status": """
        SELECT p.group_id, p.topic, p.partition FROM partition_status p
        LEFT JOIN group_status g ON g.group_id = p.group_id AND g.batch_id = p.batch_id WHERE g.group_id IS NULL""",
    "group_status: the first finding decides": """
        SELECT group_id, rule, findings[1]['rule'] AS first FROM group_status WHERE findings[1]['rule'] <> rule""",
    "lag_history: partitions behind have all of the lag": """
        SELECT group_id, topic, sampled_at, max(lag) AS lag, sum(behind['lag']) AS of_partitions
        FROM (SELECT group_id, topic, sampled_at, lag, unnest(behind) AS behind FROM lag_history WHERE lag > 0) h
        GROUP BY group_id, topic, sampled_at HAVING sum(behind['lag']) <> max(lag)""",
}


def check(root: str) -> list[Violation]:
    """Return the violated rules of the tables under `root`.

    Raises:
        UsageError: there are no tables.
    """
    store = TableStore(root)
    snapshot = Snapshot(store, batch_at(store, None))
    versions = snapshot.batch.versions
    rules = {**RULES, **{rule: sql for rule, sql in SAMPLE_RULES.items() if _table_of(rule) in versions}}
    if snapshot.batch.has_transactions:
        rules |= TRANSACTION_RULES
    findings = [found for rule, sql in rules.items() if (found := _violations(snapshot, rule, sql))]
    findings += _positions(snapshot)
    for name, version in versions.items():
        if version > store.table(name).version():
            findings.append(Violation(f"{name}: has the version that the last batch names", 1, str(version)))
    return findings


def _table_of(rule: str) -> str:
    """The table whose rows a rule selects."""
    return rule.partition(":")[0]


def _violations(snapshot: Snapshot, rule: str, sql: str) -> Violation | None:
    if _is_empty(snapshot, _table_of(rule)):
        return None
    rows = snapshot.query(sql.format(last=snapshot.batch.batch_id))
    return Violation(rule, rows.num_rows, str(rows.slice(0, 1).to_pylist()[0])) if rows.num_rows else None


def _is_empty(snapshot: Snapshot, table: str) -> bool:
    """True if a table of the batch has no files; histories of samples may be read at a later version."""
    is_pinned = table in snapshot.batch.versions and not (table in definitions.SAMPLED and table in definitions.APPENDED)
    return is_pinned and not snapshot.files(table)


def _positions(snapshot: Snapshot) -> list[Violation]:
    """Find rows at or after the log positions at which the last batch ends."""
    batch = snapshot.batch
    # a batch of an earlier layout has quarantined records of one topic only
    of_offsets = {"quarantine": "log_topic IS NULL"} if batch.has_transactions else {}
    findings = [_beyond(snapshot, table, of_offsets.get(table, "TRUE"), batch.next_offsets) for table in _WITH_POSITION]
    if batch.has_transactions:
        conditions = {**dict.fromkeys(definitions.FROM_TRANSACTIONS, "TRUE"), "quarantine": "log_topic IS NOT NULL"}
        findings += [_beyond(snapshot, *each, batch.transaction_offsets or {}) for each in conditions.items()]
    return [found for found in findings if found is not None]


def _beyond(snapshot: Snapshot, table: str, condition: str, next_offsets: Mapping[int, int]) -> Violation | None:
    if _is_empty(snapshot, table):
        return None
    newest = f"SELECT log_partition, max(log_offset) AS newest FROM {table} WHERE {condition} GROUP BY log_partition"
    rows = snapshot.query(newest).to_pylist()
    if table in definitions.APPENDED:
        # rows from before a change of the source have positions of the other one
        has_polls = POLLED_PARTITION in next_offsets
        rows = [row for row in rows if (row["log_partition"] == POLLED_PARTITION) == has_polls]
    beyond = [row for row in rows if row["newest"] >= next_offsets.get(row["log_partition"], 0)]
    return Violation(f"{table}: no row from beyond the end of the last batch", len(beyond), str(beyond[0])) if beyond else None
