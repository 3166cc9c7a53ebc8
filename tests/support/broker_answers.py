"""Comparison of the tables with a broker's answers in an `expected.json`."""

from typing import Any

from pipelines.query.engine import Snapshot


def differences(tables: str, expected: dict[str, Any], *, all_names_known: bool = True) -> list[str]:
    """Differences in words. Without `all_names_known`, assignments of topics known only by id are left out."""
    snapshot = Snapshot.open(tables)
    return _committed(snapshot, expected["committed"]) + _described(snapshot, expected.get("described", {}), all_names_known)


def _committed(snapshot: Snapshot, expected: dict[str, Any]) -> list[str]:
    found: dict[str, list[list[Any]]] = {}
    for row in _rows(
        snapshot, "SELECT group_id, topic, partition, committed_offset, metadata, leader_epoch FROM committed_offsets"
    ):
        # librdkafka appends a NUL to the metadata that it commits, and removes it when it reads
        metadata = row["metadata"].rstrip("\0")
        epoch = row["leader_epoch"]
        found.setdefault(row["group_id"], []).append([row["topic"], row["partition"], row["committed_offset"], metadata, epoch])
    return [
        f"offsets of {group}: {have} not {want}"
        for group, answers in expected.items()
        if (have := sorted(_as_long_as(answers, found.get(group, [])))) != (want := sorted(answers))
    ]


def _as_long_as(answers: list[list[Any]], rows: list[list[Any]]) -> list[list[Any]]:
    """Ignore the leader epoch where the client did not report one: old clients do not."""
    length = len(answers[0]) if answers else 5
    return [row[:length] for row in rows]


def _described(snapshot: Snapshot, expected: dict[str, Any], all_names_known: bool) -> list[str]:
    groups = {row["group_id"]: row for row in _rows(snapshot, "SELECT * FROM groups")}
    members = _members(snapshot)
    found = []
    for group, answer in expected.items():
        if isinstance(answer, str):
            continue
        if answer["state"] == "DEAD":
            found += [f"{group} is in groups, but dead in the broker"] if group in groups else []
        elif group not in groups:
            found.append(f"{group} is missing")
        else:
            found += _group(groups[group], answer, members.get(group, {}), all_names_known)
    return found


def _group(row: dict[str, Any], answer: dict[str, Any], members: dict[str, Any], all_names_known: bool) -> list[str]:
    group, found = row["group_id"], []
    if row["state"].upper() != answer["state"]:
        found.append(f"state of {group}: {row['state']} not {answer['state']}")
    if (row["group_type"] == "simple") != answer["simple"]:
        found.append(f"type of {group}: {row['group_type']}, simple is {answer['simple']}")
    if answer["state"] == "STABLE" and row["group_type"] == "classic" and row["protocol"] != answer["assignor"]:
        found.append(f"protocol of {group}: {row['protocol']} not {answer['assignor']}")
    have = sorted(([client, instance, sorted(owned)] for client, instance, owned in members.values()), key=str)
    want = sorted(([client, instance, sorted(owned)] for client, instance, owned in answer["members"]), key=str)
    if not all_names_known and row["group_type"] == "consumer":
        have, want = ([member[:2] for member in side] for side in (have, want))
    if have != want:
        found.append(f"members of {group}: {have} not {want}")
    return found


def _members(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    members: dict[str, dict[str, Any]] = {}
    query = (
        "SELECT m.group_id, m.member_id, m.client_id, m.group_instance_id, a.topic, a.partition FROM members m "
        "LEFT JOIN assignments a ON a.group_id = m.group_id AND a.member_id = m.member_id"
    )
    for row in _rows(snapshot, query):
        by_id = members.setdefault(row["group_id"], {})
        member = by_id.setdefault(row["member_id"], (row["client_id"], row["group_instance_id"], []))
        if row["topic"] is not None:
            member[2].append([row["topic"], row["partition"]])
    return members


def _rows(snapshot: Snapshot, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = snapshot.query(sql).to_pylist()
    return rows
