"""Phrases of sentences about findings: places, times, owners, amounts.

Times are in ms. They are printed in UTC and marked, for the `timed_text` that each sentence becomes.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from coordinator_core.health.status import Finding, Ownership
from coordinator_core.health.time_limits import within_limits
from coordinator_core.health.timed_text import marked
from coordinator_core.health.visible_names import visible

#: Reason of a finding whose events polls have seen: its start is the latest possible one, and its counts are the least ones.
SEEN_BY_POLLS = "seen_by_polls"
#: Reason of a finding about lag that grew in all that is known: its start is the latest possible one.
GREW_BEFORE = "grew_before"
_LATEST_STARTS = frozenset({SEEN_BY_POLLS, GREW_BEFORE})
#: Partitions, members and transactions that a sentence names; of more it has the number.
_NAMED = 2
_MILLION = 1_000_000
_MINUTE_MS = 60_000
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CLOCK = re.compile(
    rf"(?:(?P<day>[1-9]|[12][0-9]|3[01]) (?P<month>{'|'.join(_MONTHS)})(?: (?P<year>[0-9]{{4}}))?, )?"
    r"(?P<time>(?:[01][0-9]|2[0-3]):[0-5][0-9]) UTC"
)


def clock(ms: int, at_ms: int) -> str:
    """`10:50 UTC`, marked; with the date if it is of another day than `at_ms`, and the year if that is another one."""
    minute = within_limits(ms) // _MINUTE_MS
    (date, time), (today, _) = (_date_and_time(each) for each in (minute, within_limits(at_ms) // _MINUTE_MS))
    text = f"{time} UTC"
    if date != today:
        year, month, day = date.split("-")
        of_year = "" if date[:4] == today[:4] else f" {year}"
        text = f"{int(day)} {_MONTHS[int(month) - 1]}{of_year}, {text}"
    # equal texts have equal marks
    return marked(text, minute * _MINUTE_MS)


def marked_clocks(text: str, at_ms: int) -> str:
    """A text without names, made at that time, with its times marked as `clock` marked them."""
    today, _ = _date_and_time(within_limits(at_ms) // _MINUTE_MS)

    def remarked(found: re.Match[str]) -> str:
        date = today
        if found["day"]:
            date = f"{found['year'] or today[:4]}-{_MONTHS.index(found['month']) + 1:02}-{int(found['day']):02}"
        return marked(found[0], int(np.datetime64(f"{date}T{found['time']}", "ms").astype(np.int64)))

    return _CLOCK.sub(remarked, text)


@lru_cache(maxsize=4096)
def _date_and_time(minute: int) -> tuple[str, str]:
    """`2026-11-23`, `10:50`. Partitions that stop together share the minute."""
    date, time = str(np.datetime64(minute, "m")).split("T")
    return date, time


def count(number: int) -> str:
    """`68,358`; from a million on `1.2 million`."""
    return f"{number:,}" if abs(number) < _MILLION else f"{number / _MILLION:,.1f} million"


def plural(number: int, noun: str) -> str:
    """`1 member`, `3 members`."""
    return f"{count(number)} {noun if number == 1 else noun + 's'}"


def partition_name(topic: str | None, partition: int | None) -> str:
    """`orders-1`, as Kafka prints partitions."""
    return "" if topic is None else f"{visible(topic)}-{partition}"


def where(found: Sequence[Finding]) -> str:
    """The partitions of findings; of more than two the number and the first one. `the group` for none."""
    named = list(dict.fromkeys(partition_name(*each.partition) for each in found if each.partition is not None))
    if len(named) <= _NAMED:
        return " and ".join(named) or "the group"
    return f"{len(named)} partitions ({named[0]} among them)"


def since(found: Sequence[Finding], at_ms: int, verb: str = "") -> str:
    """` since 10:50 UTC`, of findings with different starts `, the first one since 10:50 UTC`; empty if it is unknown.

    A `verb` such as `, open` is put before `since`.
    """
    known = sorted(each.since_ms for each in found if each.since_ms is not None)
    if not known:
        return ""
    first = clock(known[0], at_ms)
    is_of_all = len(known) == len(found) and clock(known[-1], at_ms) == first
    return f"{verb} since {first}" if is_of_all else f", the first one{verb.removeprefix(',')} since {first}"


def since_or_before(found: Sequence[Finding], at_ms: int) -> str:
    """As `since`, ` since 10:50 UTC at the latest` if the start is the latest possible one."""
    text = since(found, at_ms)
    return f"{text} at the latest" if text and is_latest_start(found) else text


def is_latest_start(found: Sequence[Finding]) -> bool:
    """Whether one of these findings began at its `since_ms` or earlier."""
    return any(each.reason in _LATEST_STARTS for each in found)


def moment(found: Sequence[Finding], at_ms: int) -> str:
    """` at 10:50 UTC`, ` no later than 10:50 UTC` if a poll has seen it: the earliest start; empty if it is unknown."""
    first = min((each.since_ms for each in found if each.since_ms is not None), default=None)
    at = "no later than" if found[0].reason == SEEN_BY_POLLS else "at"
    return "" if first is None else f" {at} {clock(first, at_ms)}"


def owners(found: Sequence[Finding]) -> str:
    """`billing-1 on 10.0.0.7 owns it`; empty if the owner is unknown."""
    if not all(each.ownership for each in found):
        return ""
    if all(each.ownership == Ownership.NO_MEMBERS for each in found):
        return "the group has no members"
    it = "it" if len(found) == 1 else "them"
    members = Counter(member(each) for each in found if each.ownership == Ownership.MEMBER)
    without = len(found) - members.total()
    if not members:
        return f"no member owns {it}"
    named = [name for name, _ in members.most_common()]
    if len(named) <= _NAMED:
        text = f"{' and '.join(named)} {'owns' if len(named) == 1 else 'own'} {'the others' if without else it}"
    else:
        text = f"{len(named)} members ({named[0]} among them) own {'the others' if without else it}"
    return f"no member owns {without} of them, {text}" if without else text


def member(finding: Finding) -> str:
    """`billing-1 on 10.0.0.7`."""
    name = visible(finding.client_id or "a member without client id", 60)
    # brokers write a host as `/10.0.0.7`
    host = (finding.member_host or "").removeprefix("/")
    return f"{name} on {visible(host, 60)}" if host else name


def waiting(found: Sequence[Finding]) -> str:
    """`68,358 records wait`; empty if no number is known."""
    known = [each.amount for each in found if each.amount is not None]
    if not known or not sum(known):
        return ""
    return f"{plural(sum(known), 'record')} {'waits' if sum(known) == 1 else 'wait'}"


def first_waits(found: Sequence[Finding], at_ms: int) -> str:
    """`, the first of them since 10:50 UTC`; empty if it is unknown."""
    first = min((each.since_ms for each in found if each.since_ms is not None), default=None)
    return "" if first is None else f", the first of them since {clock(first, at_ms)}"


def sentence(*parts: str) -> str:
    """The parts that are not empty, as one sentence with a capital letter."""
    text = "; ".join(part for part in parts if part)
    return f"{text[:1].upper()}{text[1:]}."


def names(values: Sequence[str]) -> str:
    """At most two names; of more the number and the first one."""
    if len(values) <= _NAMED:
        return " and ".join(visible(value, 60) for value in values)
    return f"{visible(values[0], 60)} and {len(values) - 1} others"
