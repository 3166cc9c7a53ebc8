"""Nodes as client ids: members of a consumer group can tell each other nothing else with librdkafka."""

import re

from coordinator_core.protocol.groups import Node

_CLIENT_ID = re.compile(r"grouplake-node-(?P<id>\d{1,10})@(?P<host>.+):(?P<port>\d{1,5})")


def client_id_of(node: Node) -> str:
    """Return the client id of a node: its id and its address for clients."""
    return f"grouplake-node-{node.node_id}@{node.host}:{node.port}"


def node_of(client_id: str) -> Node | None:
    """Return the node of a client id; None for that of another program."""
    found = _CLIENT_ID.fullmatch(client_id)
    return None if found is None else Node(int(found["id"]), found["host"], int(found["port"]))
