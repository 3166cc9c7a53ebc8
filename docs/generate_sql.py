"""Writes docs/sql.md: questions of operators with their queries and real output: `python docs/generate_sql.py`.

The tables are those of sql_scenario.py. A test compares the page with a fresh generation.
"""

import io
import runpy
import tempfile
from pathlib import Path
from typing import NamedTuple

from pipelines.query.engine import Snapshot
from pipelines.query.output import write_table

DOCS = Path(__file__).parent
PAGE = DOCS / "sql.md"

_HEAD = """# Questions in SQL

{count} questions that operators ask, each with a query and its output. Run a query with
`grouplake sql --tables DIR "…"`, from Python with [`grouplake.open`](python.md), or in another
engine ([recipes.md](recipes.md)). [tables.md](tables.md) describes every table and view.

The outputs are those of one folder, made by `docs/generate_sql.py`: the groups of a shop until
2026-03-02 14:00 UTC. A time in a query is that of the example: replace it, or use `now()`. The
queries are in the SQL of DataFusion, which `grouplake sql` uses. In Spark, `explode` stands for
`unnest`.
"""


class Question(NamedTuple):
    """A question with its query. `note` follows the output; `as_of` is the time of `--as-of`."""

    title: str
    sql: str
    note: str = ""
    as_of: str | None = None


SECTIONS: dict[str, tuple[Question, ...]] = {
    "Lag": (
        Question(
            "Which groups are behind, and by how long?",
            """
SELECT group_id, lag, max_lag_topic AS topic, max_lag_partition AS part, round(max_lag_seconds) AS seconds,
       round(max_lag_seconds_low) AS at_least, round(max_lag_seconds_high) AS at_most, messages_lost
FROM lag_by_group
WHERE lag > 1000
ORDER BY max_lag_seconds DESC, lag DESC, group_id
""",
            "Seconds are the age of the next record to read. The bounds follow from the samples around it ([lag.md](lag.md)).",
        ),
        Question(
            "Which partitions are furthest behind, and does the lag shrink?",
            """
SELECT group_id, topic, partition, lag, round(lag_seconds) AS seconds, lag_method, round(lag_slope_per_second, 2) AS slope,
       round(drain_seconds) AS drain_seconds, client_id
FROM lag
WHERE lag > 1000 AND client_id IS NOT NULL
ORDER BY lag DESC, group_id, topic, partition
LIMIT 5
""",
        ),
        Question(
            "How did the lag of a group develop?",
            """
SELECT sampled_at, lag, max_lag_partition AS part, round(lag_seconds) AS seconds
FROM lag_history
WHERE group_id = 'billing' AND topic = 'orders' AND sampled_at >= TIMESTAMP '2026-03-02T12:00:00Z'
ORDER BY sampled_at
""",
        ),
        Question(
            "What was the lag yesterday evening?",
            """
SELECT group_id, lag, round(max_lag_seconds) AS seconds, sampled_at
FROM lag_by_group
WHERE group_id IN ('billing', 'fraud', 'search-index')
ORDER BY group_id
""",
            as_of="2026-03-01T21:30:00Z",
        ),
        Question(
            "Which groups make no progress although records are unread?",
            """
SELECT group_id, topic, count(*) AS partitions, sum(lag) AS lag, round(min(stuck_seconds)) AS stuck_seconds
FROM lag
WHERE stuck_seconds > 900
GROUP BY group_id, topic
ORDER BY stuck_seconds DESC
""",
        ),
        Question(
            "Which groups have lost records, or will lose them soon?",
            """
SELECT group_id, topic, sum(messages_lost) AS messages_lost, round(min(retention_margin_seconds)) AS margin_seconds
FROM lag
WHERE messages_lost > 0 OR retention_margin_seconds < 86400
GROUP BY group_id, topic
ORDER BY messages_lost DESC
""",
        ),
        Question(
            "Where is the lag unknown, and why?",
            """
SELECT group_id, topic, partition, group_offset, lag_reason
FROM lag
WHERE lag IS NULL
ORDER BY group_id, topic, partition
""",
        ),
        Question(
            "Which topics are read too slowly?",
            """
SELECT topic, groups, lag, max_lag_group_id, max_lag_partition AS part, round(max_lag_seconds) AS seconds
FROM lag_by_topic
ORDER BY lag DESC NULLS LAST
""",
        ),
        Question(
            "Which partitions are hot?",
            """
SELECT topic, partition, max(log_end) - min(log_end) AS records,
       round((max(log_end) - min(log_end)) / (date_part('epoch', max(answered_at)) - date_part('epoch', min(answered_at))), 1)
         AS per_second
FROM end_offsets
WHERE answered_at >= TIMESTAMP '2026-03-02T13:00:00Z' AND log_end IS NOT NULL
GROUP BY topic, partition
ORDER BY per_second DESC, topic, partition
LIMIT 6
""",
        ),
    ),
    "Status": (
        Question(
            "Which groups need attention?",
            """
SELECT group_id, status, rule, topic, partition, detail
FROM group_status
WHERE status <> 'OK'
ORDER BY group_id
""",
        ),
        Question(
            "What else is known about these groups?",
            """
SELECT group_id, finding['rule'] AS rule, finding['status'] AS status, count(*) AS findings
FROM (SELECT group_id, unnest(findings) AS finding FROM group_status) f
GROUP BY group_id, finding['rule'], finding['status']
ORDER BY group_id, rule
""",
        ),
    ),
    "Members and owners": (
        Question(
            "Which members own a partition?",
            """
SELECT a.group_id, a.client_id, m.client_host, m.group_type, m.state
FROM assignments a
JOIN group_members m ON m.group_id = a.group_id AND m.member_id = a.member_id
WHERE a.topic = 'orders' AND a.partition = 3
ORDER BY a.group_id
""",
        ),
        Question(
            "Which members owned it before, and when?",
            """
SELECT group_id, client_id, client_host, generation, since, until
FROM ownership
WHERE topic = 'orders' AND partition = 3
ORDER BY group_id, since
""",
        ),
        Question(
            "Which members owned it at 11:00?",
            """
SELECT group_id, client_id, client_host
FROM ownership
WHERE topic = 'orders' AND partition = 3
  AND COALESCE(since, TIMESTAMP '1970-01-01T00:00:00Z') <= TIMESTAMP '2026-03-02T11:00:00Z'
  AND (until IS NULL OR until > TIMESTAMP '2026-03-02T11:00:00Z')
ORDER BY group_id
""",
        ),
        Question(
            "Which clients read a topic?",
            """
SELECT client_id, client_host, group_id, since
FROM consumption_edges
WHERE topic = 'orders' AND until IS NULL
ORDER BY client_id, client_host
""",
        ),
        Question(
            "Which clients stopped reading a topic since yesterday?",
            """
SELECT client_id, client_host, group_id, topic, since, until
FROM consumption_edges
WHERE until >= TIMESTAMP '2026-03-01T14:00:00Z'
ORDER BY until, client_id
""",
        ),
        Question(
            "Which members have nothing to do?",
            """
SELECT m.group_id, m.client_id, m.client_host
FROM members m
JOIN groups g ON g.group_id = m.group_id
LEFT JOIN assignments a ON a.group_id = m.group_id AND a.member_id = m.member_id
WHERE a.member_id IS NULL AND m.assigned IS NOT NULL AND g.state = 'Stable'
ORDER BY m.group_id, m.client_id
""",
        ),
        Question(
            "Which groups have static members?",
            """
SELECT group_id, group_instance_id, client_id, client_host
FROM members
WHERE group_instance_id IS NOT NULL
ORDER BY group_id, group_instance_id
""",
        ),
        Question(
            "Which groups have which assignor and how many members?",
            """
SELECT group_id, group_type, state, protocol, generation, member_count
FROM groups
ORDER BY group_type, group_id
""",
        ),
    ),
    "Rebalances": (
        Question(
            "Which groups rebalanced today, and why?",
            """
SELECT group_id, from_generation AS was, to_generation AS now, trigger, duration_seconds AS seconds,
       members_before AS before, members_after AS after, partitions_moved AS moved, seconds_without_owner AS unowned
FROM rebalances
WHERE recorded_at >= TIMESTAMP '2026-03-02T00:00:00Z'
ORDER BY recorded_at
""",
        ),
        Question(
            "Which groups rebalance too often?",
            """
SELECT group_id, date_trunc('hour', recorded_at) AS hour, count(*) AS rebalances, sum(partitions_moved) AS moved,
       count(DISTINCT trigger) AS triggers
FROM rebalances
GROUP BY group_id, date_trunc('hour', recorded_at)
HAVING count(*) > 2
ORDER BY rebalances DESC
""",
        ),
        Question(
            "Which partitions were without an owner for the longest time?",
            """
SELECT group_id, to_generation, started_at, finished_at, seconds_without_owner
FROM rebalances
WHERE seconds_without_owner > 1
ORDER BY seconds_without_owner DESC
""",
        ),
        Question(
            "What happened in a group?",
            """
SELECT record_timestamp, generation, change, detail
FROM group_history
WHERE group_id = 'payments-audit'
ORDER BY batch_id, log_offset, change
""",
        ),
    ),
    "Offsets": (
        Question(
            "Which offsets were reset, and by which party?",
            """
SELECT group_id, topic, partition, reset_at, from_offset, to_offset, size, direction, reset_by
FROM resets
ORDER BY reset_at, partition
""",
        ),
        Question(
            "Where was a group at 11:00?",
            """
SELECT topic, partition, committed_offset, commit_timestamp
FROM (
  SELECT topic, partition, committed_offset, commit_timestamp,
         row_number() OVER (PARTITION BY topic, partition ORDER BY batch_id DESC, log_offset DESC) AS n
  FROM offset_history
  WHERE group_id = 'fraud' AND record_timestamp <= TIMESTAMP '2026-03-02T11:00:00Z'
) h
WHERE n = 1
ORDER BY topic, partition
""",
            "A batch keeps the last commit of a partition, so the time is that of a batch's last commit.",
        ),
        Question(
            "How fast does a group read?",
            """
SELECT group_id, topic, sum(commits) AS commits, sum(committed_offset - previous_offset) AS records
FROM offset_history
WHERE change = 'commit' AND record_timestamp >= TIMESTAMP '2026-03-02T13:00:00Z'
GROUP BY group_id, topic
ORDER BY records DESC, group_id, topic
""",
        ),
        Question(
            "Which offsets wait for the end of a transaction?",
            """
SELECT producer_id, group_id, count(*) AS partitions, min(commit_timestamp) AS since
FROM pending_offsets
GROUP BY producer_id, group_id
ORDER BY since
""",
        ),
        Question(
            "Which transactions hang, and what do they block?",
            """
SELECT transactional_id, state, reason, hanging_since, group_id, topic, partition, pending_offset
FROM hanging_transactions
ORDER BY hanging_since, transactional_id, group_id, topic, partition
""",
            "Needs `run --transactions`. A row without a group is a partition whose records wait.",
        ),
        Question(
            "Which producers commit the offsets of a group?",
            """
SELECT group_id, transactional_id, producer_id, state, open_since, offsets, pending_offsets, last_commit_at
FROM transactional_groups
ORDER BY group_id, transactional_id
""",
        ),
        Question(
            "How many transactions does each producer end?",
            """
SELECT transactional_id, sum(commits) AS commits, sum(aborts) AS aborts, sum(initializations) AS producers
FROM transaction_history
GROUP BY transactional_id
ORDER BY transactional_id
""",
            "More producers than starts of the application fence each other.",
        ),
        Question(
            "Which offsets expire next?",
            """
SELECT group_id, topic, count(*) AS partitions, min(expires_at) AS expires_at
FROM expiring_offsets
WHERE expires_at IS NOT NULL
GROUP BY group_id, topic
ORDER BY expires_at
""",
        ),
        Question(
            "Which groups are unused?",
            """
SELECT group_id, state, offsets, missing_topics AS missing, last_activity_at, idle_days, expires_at
FROM unused_groups
ORDER BY idle_days DESC, group_id
""",
        ),
        Question(
            "Which groups appeared or were deleted today?",
            """
SELECT group_id, record_timestamp, state, previous_state
FROM membership_history
WHERE (state = 'Dead' OR previous_state IS NULL) AND record_timestamp >= TIMESTAMP '2026-03-02T00:00:00Z'
ORDER BY record_timestamp, group_id
""",
        ),
    ),
    "The log and the job": (
        Question(
            "What could not be decoded?",
            """
SELECT log_partition, log_offset, record_timestamp, reason
FROM quarantine
ORDER BY record_timestamp
""",
        ),
        Question(
            "How current are the tables?",
            """
SELECT max(batch_id) AS batch_id, max(finished_at) AS finished_at, sum(records_read) AS records_read, max(era) AS era
FROM batches
""",
        ),
    ),
}


def output(root: str, question: Question) -> str:
    """The table that a query prints."""
    out = io.StringIO()
    write_table(Snapshot.open(root, question.as_of).query(question.sql), out)
    return out.getvalue()


def page(root: str) -> str:
    """The page, from the tables under `root`."""
    parts = [_HEAD.format(count=sum(map(len, SECTIONS.values())))]
    number = 0
    for title, questions in SECTIONS.items():
        parts.append(f"## {title}\n")
        for question in questions:
            number += 1
            parts.append(f"### {number}. {question.title}\n")
            if question.as_of is not None:
                parts.append(f"With `--as-of {question.as_of}`:\n")
            parts.append(f"```sql{question.sql}```\n\n```\n{output(root, question)}```\n")
            if question.note:
                parts.append(f"{question.note}\n")
    return "\n".join(parts)


def generated() -> str:
    """The page from new tables."""
    with tempfile.TemporaryDirectory() as root:
        runpy.run_path(str(DOCS / "sql_scenario.py"))["write_tables"](root)
        return page(root)


if __name__ == "__main__":
    PAGE.write_text(generated(), encoding="utf-8")
