"""The reason for a status as a sentence, from the findings of a group."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.dashboard.words.names import visible
from pipelines.dashboard.words.quantities import count, duration, plural

Finding = Mapping[str, Any]

#: Partitions that a sentence names; of more it has the number.
_NAMED = 2

#: Rule of partitions whose commits have stopped.
STOPPED = "burrow_2"
_FINE = ("OK", "NOTFOUND")

_LAG_REASONS = {
    "source_without_cluster": "the source of the tables has no brokers",
    "topic_authorization_failed": "the job may not describe the topic",
    "unknown_topic_or_partition": "the topic does not exist",
    "leader_does_not_answer": "the leader of the partition does not answer",
    "leader_not_available": "the partition has no leader",
    "no_commit": "the group has not committed an offset",
    "no_sample": "there is no sample of log ends yet",
    "first_sample": "there is only one sample of log ends",
}


def reasons(findings: Sequence[Finding], members: int | None = None) -> list[dict[str, Any]]:
    """One entry per rule with its sentence, in the order of the findings; findings of one rule are taken together.

    Findings of the statuses OK and NOTFOUND are no reasons. `members` is the number of members of the group.
    """
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding["status"] not in _FINE:
            by_rule.setdefault(finding["rule"], []).append(finding)
    return [
        {"rule": rule, "status": found[0]["status"], "sentence": sentence(rule, found, members), "partitions": len(found)}
        for rule, found in by_rule.items()
    ]


def sentence(rule: str, found: Sequence[Finding], members: int | None = None) -> str:
    """The sentence of a rule that found at least one defect."""
    words = _SENTENCES.get(rule)
    text = words(found) if words else f"{rule}: {found[0]['detail']}."
    return f"{text[:-1]}: the group has no members." if rule == STOPPED and members == 0 else text


def rule_name(rule: str) -> str:
    """`Burrow's rule 2`, `rebalance storm`."""
    return f"Burrow's rule {rule.removeprefix('burrow_')}" if rule.startswith("burrow_") else rule.replace("_", " ")


def lag_reason(reason: str | None) -> str:
    """The reason of an unknown lag in words; one that a later version may add is printed as it is."""
    return "" if reason is None else _LAG_REASONS.get(reason, reason.replace("_", " "))


def _where(found: Sequence[Finding]) -> str:
    named = [partition_name(each["topic"], each["partition"]) for each in found if each["topic"] is not None]
    if len(named) <= _NAMED:
        return " and ".join(named)
    return f"{len(named)} partitions ({named[0]} among them)"


def partition_name(topic: str | None, partition: int | None) -> str:
    """`orders-1`, as Kafka prints partitions."""
    return "" if topic is None else f"{visible(topic)}-{partition}"


def _verb(found: Sequence[Finding], one: str, more: str) -> str:
    return one if len(found) == 1 else more


def _jump(by: Callable[[Finding], str]) -> Callable[[Sequence[Finding]], str]:
    def words(found: Sequence[Finding]) -> str:
        first = found[0]
        others = "" if len(found) == 1 else f", and {plural(len(found) - 1, 'other partition')} likewise"
        where = partition_name(first["topic"], first["partition"])
        return f"{by(first)} moved {where} from {count(first['from_offset'])} to {count(first['to_offset'])}{others}."

    return words


def _party(found: Finding) -> str:
    return "A member" if found["by"] == "member" else "A client outside the group"


def _unknown(found: Sequence[Finding]) -> str:
    reason = found[0]["detail"].removeprefix("lag unknown: ")
    if reason == found[0]["detail"]:
        return f"{reason[:1].upper()}{reason[1:]}."
    return f"The lag of {_where(found)} is unknown: {lag_reason(reason)}."


_SENTENCES: dict[str, Callable[[Sequence[Finding]], str]] = {
    "burrow_2": lambda found: f"No commits on {_where(found)}, although records are waiting.",
    "burrow_3": lambda found: f"The position of {_where(found)} went back.",
    "burrow_5": lambda found: f"{_where(found)} {_verb(found, 'commits', 'commit')} the same offset again and again.",
    "burrow_6": lambda found: f"The lag of {_where(found)} grew with every recent commit.",
    "data_lost": lambda found: f"Retention deleted records of {_where(found)} before the group read them.",
    "hanging_transaction": lambda found: (
        f"A transaction that is open for {duration(found[0]['window_seconds'])} blocks {_where(found)}."
    ),
    "near_retention": lambda found: f"Retention will soon delete unread records of {_where(found)}.",
    "offsets_expiring": lambda found: f"The committed {_verb(found, 'offset', 'offsets')} of {_where(found)} will soon expire.",
    "rebalance_storm": lambda found: f"{found[0]['window_rows']} rebalances within {duration(found[0]['window_seconds'])}.",
    "reset": _jump(lambda _: "An administrator"),
    "rewound": _jump(_party),
    "skew": lambda found: f"Nearly all of the lag is on {_where(found)}.",
    "members_without_partitions": lambda found: f"{found[0]['detail'].capitalize()}, for {duration(found[0]['window_seconds'])}.",
    "unknown": _unknown,
}
