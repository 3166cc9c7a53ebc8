"""Short names of members for charts and sentences, and the number of their colour."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

#: Characters of a member id that separate members of one client id and host.
_SUFFIX = 4


class MemberLabel(NamedTuple):
    """`name` is unique among the identities of a group; `colour` counts them in the order of their first appearance."""

    name: str
    colour: int


def member_labels(rows: Sequence[Mapping[str, Any]]) -> dict[str, MemberLabel]:
    """Member id → label, from rows with `member_id`, `group_instance_id`, `client_id`, `client_host`.

    A client that returns under a new member id keeps name and colour: a static member by its instance id, others by client id and
    host, if no other member of the group has both.
    """
    members: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        # a member of a past time whose table was removed has no host; the histories of owners have it
        if row["member_id"] not in members or row["client_host"] is not None:
            members[row["member_id"]] = row
    shared = Counter(_client(row) for row in members.values())
    # several members of one client and host at a time are not restarts of one member
    parallel = {client for client, number in shared.items() if number > 1 and _overlap(rows, client)}
    identities = {
        member: (*_client(row), member) if _client(row) in parallel else (*_client(row), "") for member, row in members.items()
    }
    names = Counter(identity[0] for identity in set(identities.values()))
    numbers: dict[tuple[str, str, str], int] = {}
    labels = {}
    for member, identity in identities.items():
        name, host, suffix = identity
        if names[name] > 1:
            name = f"{name} {member[-_SUFFIX:]}" if suffix or not host else f"{name} {host.lstrip('/')}"
        labels[member] = MemberLabel(name, numbers.setdefault(identity, len(numbers)))
    return labels


def _client(row: Mapping[str, Any]) -> tuple[str, str]:
    instance = row["group_instance_id"]
    if instance is not None:
        return instance, ""
    # unknown ones are not those of another member
    return row["client_id"] or row["member_id"], row["client_host"] or ""


def _overlap(rows: Sequence[Mapping[str, Any]], client: tuple[str, str]) -> bool:
    """True if two members of a client have partitions at the same time."""
    spans = sorted(
        ((row["since"] is not None, row["since"]), (row["until"] is None, row["until"]), row["member_id"])
        for row in rows
        if _client(row) == client
    )
    return any(
        later[0][0] and earlier[2] != later[2] and (earlier[1][0] or earlier[1][1] > later[0][1])
        for number, earlier in enumerate(spans)
        for later in spans[number + 1 :]
    )
