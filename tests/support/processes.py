"""The data about a process and its descendants that any user of the machine can read."""

from collections import defaultdict
from pathlib import Path


def family(pid: int) -> set[int]:
    """The process and its running descendants."""
    children: dict[int, set[int]] = defaultdict(set)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name in parentheses may contain any character
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children[parent].add(int(stat.parent.name))
    found, new = set(), {pid}
    while new:
        found |= new
        new = {child for parent in new for child in children[parent]} - found
    return found


def session_states(leader: int) -> dict[int, str]:
    """The processes of a session and their states, such as "T" for a stopped one; also those whose parent has ended."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader:
            found[int(stat.parent.name)] = state
    return found


def arguments_and_environments(pid: int) -> dict[int, bytes]:
    """Command line and environment of every process of the family."""
    shown = {}
    for each in family(pid):
        try:
            shown[each] = b"\n".join(Path(f"/proc/{each}/{name}").read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
    return shown


def with_environment(variable: str, value: str) -> set[int]:
    """The running processes that were started with this environment variable, wherever their parents and sessions are."""
    wanted, found = f"{variable}={value}".encode(), set()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in environment.read_bytes().split(b"\0"):
                found.add(int(environment.parent.name))
        except OSError:
            continue
    return found
