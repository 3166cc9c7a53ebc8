"""The sentences about findings, for every reader: page, `grouplake lag --status`, SQL, alerts.

A row of TEXTS has three functions from the findings of one rule in one group: what was found, since when and who owns it; what
follows if nothing is done; the next step. Names of clients are made visible, and are in no command that a reader may copy. Every
sentence knows where its times are.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.health.burrow_rules import BURROW_RULES, FORMER_NAMES
from coordinator_core.health.durations import duration
from coordinator_core.health.finding_phrases import (
    SEEN_BY_POLLS,
    clock,
    count,
    first_waits,
    member,
    moment,
    names,
    owners,
    partition_name,
    plural,
    sentence,
    since,
    since_or_before,
    waiting,
    where,
)
from coordinator_core.health.status import Finding, Ownership, Status
from coordinator_core.health.timed_text import TimedText, timed_text, with_marks
from coordinator_core.health.visible_names import visible

Found = Sequence[Finding]
#: Findings of one rule, and the time of the evaluation.
Phrase = Callable[[Found, int], str]


class Text(NamedTuple):
    """The words about the findings of a rule; `consequence` and `next_step` may be empty."""

    detail: TimedText
    consequence: TimedText
    next_step: TimedText


class RuleText(NamedTuple):
    detail: Phrase
    consequence: Phrase = lambda _found, _at_ms: ""
    next_step: Phrase = lambda _found, _at_ms: ""


#: Why a lag is unknown: reasons of `lag_reason` and of the rule `unknown`.
LAG_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "source_without_cluster": "the source of the tables has no brokers",
        "topic_authorization_failed": "the job may not describe the topic",
        "unknown_topic_or_partition": "the topic does not exist",
        "unknown_partition": "the topic does not have this partition",
        "leader_does_not_answer": "the leader of the partition does not answer",
        "leader_not_available": "the partition has no leader",
        "no_commit": "the group has not committed an offset",
        "negative_commit": "the committed offset is negative, and no record has such an offset",
        "no_sample": "there is no sample of log ends yet",
        "first_sample": "there is only one sample of log ends",
        "commit_beyond_end": "the committed offset is beyond the log end",
        "other_incarnation": "the commit belongs to an earlier topic of the same name",
        "truncated": "an unclean leader election removed the records that the commit counts",
        "catching_up": "the job has not read all commits yet",
        "loss_unknown": "the log starts after the last commit that was read, and later commits are not known yet",
    }
)
#: Reason of the rule `unknown` for a newest sample that is too old, and for a job that has commits left to read.
STALE_SAMPLE, CATCHING_UP = "stale_sample", "catching_up"
#: Reasons of the rule `hanging_transaction`: an offset commit of the group waits, or its position; the position, blocked for an
#: unknown time before the first sample that showed it.
OFFSET_COMMIT, LAST_STABLE_OFFSET, AT_LEAST = "offset_commit", "last_stable_offset", "last_stable_offset_at_least"
#: Reason of the rules about jumps: the offset before was `from_offset` or a later one.
FROM_AT_LEAST = "from_at_least"

_UNKNOWN_STEPS = {
    "topic_authorization_failed": "Grant the job the ACL Describe on the topic.",
    "unknown_topic_or_partition": "Delete the offsets of the topic if it was deleted on purpose.",
    "unknown_partition": "Check the client that committed to the partition, and delete the offsets if it never existed.",
    "leader_does_not_answer": "Check the broker that leads the partition.",
    "leader_not_available": "Check the brokers of the partition.",
    "negative_commit": "Check the client that committed it, and reset the offsets of the group.",
    "other_incarnation": "Reset the offsets of the group to the new topic.",
    "truncated": "Compare the data with its source, then reset the offsets of the group.",
    STALE_SAMPLE: "Check that the job runs and reaches the brokers.",
}


def lag_reason(reason: str | None) -> str:
    """The reason of an unknown lag in words; one that a later version may add is printed as it is."""
    return "" if reason is None else LAG_REASONS.get(reason, reason.replace("_", " "))


def rule_word(rule: str) -> str:
    """The name of a rule; for a finding of an earlier layout its present name."""
    return FORMER_NAMES.get(rule, rule)


def rule_label(rule: str | None) -> str:
    """`rebalance storm`, `stopped, Burrow rule 2`."""
    if rule is None:
        return ""
    word = rule_word(rule)
    number = _BURROW_NUMBERS.get(word)
    return word.replace("_", " ") + ("" if number is None else f", Burrow rule {number}")


def text_of(found: Found, at_ms: int) -> Text:
    """The words about the findings of one rule at the time of their evaluation."""
    first = found[0]
    if first.status is Status.OK:
        return _text("No rule found a defect.", "", "")
    rule = TEXTS.get(rule_word(first.rule))
    if rule is None:
        # sentences of a table
        sentences = sentence(first.detail.removesuffix(".")), first.consequence or "", first.next_step or ""
        return _text(*map(with_marks, sentences))
    return _text(*(phrase(found, at_ms) for phrase in rule))


def _text(*sentences: str) -> Text:
    return Text(*map(timed_text, sentences))


def with_text(finding: Finding, at_ms: int) -> Finding:
    """The finding with its words."""
    text = text_of([finding], at_ms)
    return finding._replace(detail=text.detail, consequence=text.consequence or None, next_step=text.next_step or None)


_BURROW_NUMBERS = {rule.name: rule.number for rule in BURROW_RULES}


def _deletion(found: Found, at_ms: int) -> str:
    due = min((each.due_ms for each in found if each.due_ms is not None), default=None)
    if due is None:
        return "The lag grows until the group reads again."
    return _deleted_from(due, at_ms)


def _deleted_from(due_ms: int, at_ms: int) -> str:
    when = "now" if due_ms <= at_ms else f"from {clock(due_ms, at_ms)} on"
    return f"Retention deletes unread records {when}."


def _check_owner(found: Found, _at_ms: int) -> str:
    if all(each.ownership == Ownership.NO_MEMBERS for each in found):
        return "Start a consumer of the group, or delete the group if it is no longer needed."
    known = list(dict.fromkeys(member(each) for each in found if each.ownership == Ownership.MEMBER))
    if not known:
        return "Check the consumers of the group."
    them = known[0] if len(known) == 1 else "the owners"
    return f"Check the log and the threads of {them}, and restart {'it' if len(known) == 1 else 'them'} if processing hangs."


def _add_capacity(_found: Found, _at_ms: int) -> str:
    return "Compare the time per record with the rate of the producers; add members, or make processing faster."


def _falls_behind(found: Found, at_ms: int) -> str:
    partitions = sum(each.window_rows or 1 for each in found)
    are_single = partitions == len(found)
    topics = list(dict.fromkeys(visible(each.partition.topic) for each in found if each.partition is not None))
    place = where(found) if are_single else " and ".join(topics)
    rate = sum(each.rate or 0 for each in found)
    on = "" if are_single else f" on {partitions} partitions"
    text = f"the group falls behind by {rate:,.1f} records/s in {place}{since_or_before(found, at_ms)}{on}"
    due = min((each.due_ms for each in found if each.due_ms is not None), default=None)
    deletion = "" if due is None else f"unread data is deleted in {duration((due - at_ms) / 1000)} at this rate"
    return sentence(text, owners(found) if are_single else _owner_of_worst(found), deletion, waiting(found))


def _owner_of_worst(found: Found) -> str:
    """Each finding has one of the partitions of its topic: that whose data is deleted first, if it is known."""
    worst = max(found, key=lambda each: (-inf if each.due_ms is None else -each.due_ms, each.rate or 0))
    if worst.ownership != Ownership.MEMBER or worst.partition is None:
        return ""
    why = "which falls behind most" if worst.due_ms is None else "whose data is deleted first"
    return f"{member(worst)} owns {partition_name(*worst.partition)}, {why}"


def _falls_further(_found: Found, _at_ms: int) -> str:
    return "The lag grows until the group reads as fast as records are written."


def _stopped(found: Found, at_ms: int) -> str:
    return sentence(f"no commits on {where(found)}{since_or_before(found, at_ms)}", owners(found), waiting(found))


def _went_back(found: Found, at_ms: int) -> str:
    first = found[0]
    moved = ""
    if len(found) == 1 and first.from_offset is not None and first.to_offset is not None:
        moved = f" {_from_offset(first)} to {first.to_offset:,}"
    text = f"the position of {where(found)} went back{moved}{moment(found, at_ms)} and has not reached its earlier offset again"
    return sentence(text, owners(found), waiting(found))


def _stalled(found: Found, at_ms: int) -> str:
    return sentence(
        f"commits on {where(found)} repeat the same offset{since_or_before(found, at_ms)}", owners(found), waiting(found)
    )


def _lag_never_fell(found: Found, at_ms: int) -> str:
    return sentence(f"the lag of {where(found)} fell at no commit{since(found, at_ms)}", owners(found), waiting(found))


def _data_lost(found: Found, at_ms: int) -> str:
    lost = sum(each.amount or 0 for each in found)
    seen = f", first seen{at}" if (at := moment(found, at_ms)) else ""
    return sentence(
        f"retention deleted {plural(lost, 'record')} of {where(found)} before the group read them{seen}", owners(found)
    )


def _beyond_end(found: Found, _at_ms: int) -> str:
    beyond = plural(max(each.amount or 0 for each in found), "offset")
    one = len(found) == 1
    text = f"the committed {'offset' if one else 'offsets'} of {where(found)} {'is' if one else 'are'} beyond the log end"
    return sentence(f"{text} by {'' if one else 'up to '}{beyond}", owners(found))


def _hanging_transaction(found: Found, at_ms: int) -> str:
    ids = list(dict.fromkeys(each.transactional_id for each in found if each.transactional_id is not None))
    producers = list(dict.fromkeys(each.producer_id for each in found if each.producer_id is not None))
    whose = f" of {names(ids)}" if ids else f" of producer {producers[0]}" if len(producers) == 1 else ""
    start = since(found, at_ms, ", open") + (" at least" if found[0].reason == AT_LEAST else "")
    opened = f"{start}," if start else ""
    held = f"offset commits on {where(found)}" if found[0].reason == OFFSET_COMMIT else where(found)
    article = "a transaction" if len(ids) < 2 else "transactions"
    return sentence(f"{article}{whose}{opened} {'blocks' if len(ids) < 2 else 'block'} {held}", owners(found), waiting(found))


def _transaction_effect(found: Found, _at_ms: int) -> str:
    if found[0].reason == OFFSET_COMMIT:
        return "A consumer that starts now waits for the end of the transaction before it reads a record."
    return "Consumers with isolation.level=read_committed read nothing more of these partitions until the transaction ends."


def _end_transaction(_found: Found, _at_ms: int) -> str:
    return "Check the producer; if it is gone, run kafka-transactions.sh with find-hanging and abort."


def _near_retention(found: Found, at_ms: int) -> str:
    due = min((each.due_ms for each in found if each.due_ms is not None), default=None)
    when = "soon" if due is None else "now" if due <= at_ms else f"from {clock(due, at_ms)} on"
    waits = f"{text}{first_waits(found, at_ms)}" if (text := waiting(found)) else ""
    return sentence(f"retention deletes unread records of {where(found)} {when}", owners(found), waits)


def _offsets_expiring(found: Found, at_ms: int) -> str:
    due = min((each.due_ms for each in found if each.due_ms is not None), default=None)
    what = f"the committed {'offset' if len(found) == 1 else 'offsets'} of {where(found)}"
    if due is None:
        return sentence(f"{what} will soon expire", _no_members(found, at_ms))
    if due <= at_ms:
        return sentence(
            f"{what} expired at {clock(due, at_ms)}, and the broker removes what has expired", _no_members(found, at_ms)
        )
    return sentence(f"{what} will expire {'at' if len(found) == 1 else 'from'} {clock(due, at_ms)}", _no_members(found, at_ms))


def _no_members(found: Found, at_ms: int) -> str:
    """`the group has had no members since 10:50 UTC`."""
    left = since(found, at_ms)
    return f"the group has had no members{left}" if left else owners(found)


def _rebalance_storm(found: Found, at_ms: int) -> str:
    rows = found[0].window_rows
    at_least = "at least " if found[0].reason == SEEN_BY_POLLS else ""
    return sentence(f"{'many' if rows is None else f'{at_least}{rows}'} rebalances{since(found, at_ms)}")


def _jump(found: Found, at_ms: int) -> str:
    first = found[0]
    party = {"admin": "an administrator", "member": "a member"}.get(first.by or "", "an unknown client")
    more = "" if len(found) == 1 else f", and {plural(len(found) - 1, 'more offset')}"
    if first.to_offset is None:
        return sentence(f"{party} moved {where(found)}{moment(found, at_ms)}")
    moved = f"{_from_offset(first)} to {first.to_offset:,}"
    name = "" if first.partition is None else partition_name(*first.partition)
    return sentence(f"{party} moved {name} {moved}{moment(found[:1], at_ms)}{more}", owners(found[:1]))


def _from_offset(moved: Finding) -> str:
    """`from 1,200`; `from 1,200 or later` where commits in between are not known, and `back` where none is."""
    if moved.from_offset is None:
        return "back"
    return f"from {moved.from_offset:,}{' or later' if _moved_from_at_least(moved) else ''}"


def _moved_from_at_least(moved: Finding) -> bool:
    return moved.reason in (FROM_AT_LEAST, SEEN_BY_POLLS)


def _jump_effect(found: Found, _at_ms: int) -> str:
    first = found[0]
    if first.to_offset is None:
        return ""
    if first.from_offset is None:
        return "The group reads some offsets again."
    size, is_least = first.to_offset - first.from_offset, _moved_from_at_least(first)
    if size > 0:
        return f"The group skips {'at most ' if is_least else ''}{plural(size, 'offset')}."
    return f"The group reads {'at least ' if is_least else ''}{plural(-size, 'offset')} again."


def _undo_jump(found: Found, _at_ms: int) -> str:
    if found[0].by == "admin":
        return "If this was not intended, stop the consumers and reset the offsets with kafka-consumer-groups.sh."
    return "If this was not intended, look for a seek in the consumer, or for a restart that read an old position."


def _hot_partition(found: Found, at_ms: int) -> str:
    first, topics = found[0], {each.partition.topic for each in found if each.partition is not None}
    text = f"far more records were written to {where(found)} than to the other partitions"
    if len(topics) == 1 and first.total and first.window_rows and first.window_seconds:
        share = f"{count(sum(each.amount or 0 for each in found))} of {plural(first.total, 'record')}"
        number = f"{'one' if len(found) == 1 else len(found)} of {first.window_rows} partitions"
        rate = sum(each.rate or 0 for each in found)
        text = f"{share} of the last {duration(first.window_seconds)} are on {where(found)}, {number}: {rate:,.1f} records/s"
    return sentence(text, owners(found), _oldest_unread(found, at_ms))


def _hot_partition_effect(found: Found, at_ms: int) -> str:
    due = min((each.due_ms for each in found if each.due_ms is not None), default=None)
    deletion = "" if due is None else f" {_deleted_from(due, at_ms)}"
    return f"More members do not help: one member has to read the partition.{deletion}"


def _oldest_unread(found: Found, at_ms: int) -> str:
    first = min((each.since_ms for each in found if each.since_ms is not None), default=None)
    return "" if first is None else f"the first unread record has waited since {clock(first, at_ms)}"


def _skew(found: Found, at_ms: int) -> str:
    first = found[0]
    share = f"{count(first.amount)} of {plural(first.total, 'record')}" if first.amount and first.total else "nearly all"
    rows = "" if first.window_rows is None else f", one of {first.window_rows} partitions"
    return sentence(f"{share} of lag are on {where(found)}{rows}{first_waits(found, at_ms)}", owners(found))


def _members_without_partitions(found: Found, at_ms: int) -> str:
    first = found[0]
    idle = "members" if first.amount is None else f"{first.amount} of {plural(first.window_rows or 0, 'member')}"
    named = f" ({member(first)})" if first.ownership == Ownership.MEMBER else ""
    return sentence(f"{idle}{named} {'has' if first.amount == 1 else 'have'} had no partitions{since_or_before(found, at_ms)}")


def _unknown(found: Found, at_ms: int) -> str:
    first = found[0]
    if first.reason == CATCHING_UP:
        known = "" if first.since_ms is None else f"commits are known until {clock(first.since_ms, at_ms)}"
        unread = (
            ""
            if first.amount is None
            else f"{plural(first.amount, 'record')} {'is' if first.amount == 1 else 'are'} still unread"
        )
        return sentence("catching up" + (": " if known or unread else "") + ", ".join(text for text in (known, unread) if text))
    if first.reason == STALE_SAMPLE:
        return sentence(f"the lag of {where(found)} is unknown{since(found, at_ms)}: the newest sample is of that time")
    if first.reason is None:
        return sentence(with_marks(first.detail).removesuffix("."))
    return sentence(f"the lag of {where(found)} is unknown{since(found, at_ms)}: {lag_reason(first.reason)}")


def _unnoticed(found: Found, _at_ms: int) -> str:
    if found[0].reason is None:
        # the data of the whole group is old, or not complete
        return "Meanwhile, a defect of the group is not noticed."
    return "" if found[0].reason == CATCHING_UP else "While the lag is unknown, a defect of these partitions is not noticed."


#: Rule → its words. A rule without an entry prints the `detail` of its finding.
TEXTS: Mapping[str, RuleText] = MappingProxyType(
    {
        "stopped": RuleText(_stopped, _deletion, _check_owner),
        "went_back": RuleText(
            _went_back,
            lambda _found, _at_ms: "The group reads the records in between again.",
            lambda _found, _at_ms: "Look for a reset or a seek at that time, and check whether processing twice does harm.",
        ),
        "stalled": RuleText(_stalled, _deletion, _check_owner),
        "lag_never_fell": RuleText(_lag_never_fell, _deletion, _add_capacity),
        "data_lost": RuleText(
            _data_lost,
            lambda _found, _at_ms: "The group never reads these records, and loses more until it has caught up.",
            lambda _found, _at_ms: "Raise retention.ms of the topic until the group has caught up; load the lost records anew.",
        ),
        "beyond_end": RuleText(
            _beyond_end,
            lambda _found, _at_ms: "A new consumer begins where auto.offset.reset says: it skips records or reads them again.",
            lambda _found, _at_ms: "Check whether the topic was created again, then reset the offsets of the group.",
        ),
        "hanging_transaction": RuleText(_hanging_transaction, _transaction_effect, _end_transaction),
        "falls_behind": RuleText(_falls_behind, _falls_further, _add_capacity),
        "near_retention": RuleText(
            _near_retention,
            lambda _found, _at_ms: "The group never reads the deleted records.",
            lambda _found, _at_ms: "Make the group read faster, or raise retention.ms of the topic until it has caught up.",
        ),
        "offsets_expiring": RuleText(
            _offsets_expiring,
            lambda _found, _at_ms: "The group then begins where auto.offset.reset says: it skips records or reads them again.",
            lambda _found, _at_ms: "Start a consumer of the group, or delete the group if it is no longer needed.",
        ),
        "rebalance_storm": RuleText(
            _rebalance_storm,
            lambda _found, _at_ms: "Members read nothing while the group rebalances, so the lag grows.",
            lambda _found, _at_ms: "Look for members that join and leave; compare max.poll.interval.ms with the time per poll.",
        ),
        "reset": RuleText(_jump, _jump_effect, _undo_jump),
        "rewound": RuleText(_jump, _jump_effect, _undo_jump),
        "hot_partition": RuleText(
            _hot_partition,
            _hot_partition_effect,
            lambda _found, _at_ms: "Look for a key that many records have; use several keys for it, or make processing faster.",
        ),
        "skew": RuleText(
            _skew,
            lambda _found, _at_ms: "More members do not help: one member has to read this partition.",
            lambda _found, _at_ms: "Check the owner of the partition, and whether the keys of the records are spread evenly.",
        ),
        "members_without_partitions": RuleText(
            _members_without_partitions,
            lambda _found, _at_ms: "These members read nothing.",
            lambda _found, _at_ms: "Check their subscriptions; remove members, or add partitions to the topics.",
        ),
        "unknown": RuleText(_unknown, _unnoticed, lambda found, _at_ms: _UNKNOWN_STEPS.get(found[0].reason or "", "")),
    }
)  # fmt: skip
