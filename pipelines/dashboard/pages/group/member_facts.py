"""Facts about the members of a group that are no defects, as sentences of its page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import plural
from pipelines.lag.tables.spare_members import MemberNow, member_now, spare_members

Row = Mapping[str, Any]


def member_facts(members: Sequence[Row], partitions: Mapping[str, int]) -> list[str]:
    """The facts, from the rows of `members`; a row of an earlier layout lacks columns.

    `partitions` are the numbers of partitions of topics, as `spare_members` takes them.
    """
    return [fact for fact in (_unreadable(members), *_spare(members, partitions)) if fact]


def _spare(members: Sequence[Row], partitions: Mapping[str, int]) -> Iterator[str]:
    """Members that have no partitions because there are none for them."""
    now = {row["member_id"]: member_now(row, bool(row["assigned"])) for row in members}
    spare = [now[name] for name in sorted(spare_members(now, partitions))]
    standby = [each for each in spare if each.standby_tasks]
    if standby:
        tasks = sum(each.standby_tasks for each in standby)
        it = "it holds" if len(standby) == 1 else "they hold"
        yield f"{_without(standby, now)} {it} {plural(tasks, 'standby task')}."
    others = [each for each in spare if each.topics is not None and not each.standby_tasks]
    if others:
        topics = {topic for each in others for topic in each.topics or ()}
        number = sum(partitions.get(topic, 0) for topic in topics)
        it = "it subscribes" if len(others) == 1 else "they subscribe"
        yield f"{_without(others, now)} the topics to which {it} have {plural(number, 'partition')}."


def _without(found: Sequence[MemberNow], members: Mapping[str, MemberNow]) -> str:
    """`1 of 2 members (billing-2) has no partitions:`."""
    named = f" ({visible(found[0].client_id or '', 60)})" if len(found) == 1 and found[0].client_id else ""
    has = "has" if len(found) == 1 else "have"
    return f"{len(found)} of {plural(len(members), 'member')}{named} {has} no partitions:"


def unreadable_members(members: Sequence[Row]) -> list[Row]:
    """The members whose assignment cannot be read, so that their partitions are unknown."""
    return [row for row in members if row.get("assignment_problem") is not None]


def _unreadable(members: Sequence[Row]) -> str:
    found = unreadable_members(members)
    if not found:
        return ""
    first = found[0]
    has = "has an unreadable assignment, so its" if len(found) == 1 else "have unreadable assignments, so their"
    name = visible(first["client_id"], 60)
    return f"{plural(len(found), 'member')} {has} partitions are unknown. {name}: {visible(first['assignment_problem'])}."
