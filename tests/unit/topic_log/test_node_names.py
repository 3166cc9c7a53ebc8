"""Nodes in client ids, beside members of other programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.protocol.groups import Node
from coordinator_core.topic_log.node_names import client_id_of, node_of


@given(st.builds(Node, st.integers(0, 2**31 - 1), st.sampled_from(("127.0.0.1", "node-1.example", "::1")), st.integers(1, 65535)))
def test_a_client_id_names_its_node(node: Node) -> None:
    assert node_of(client_id_of(node)) == node


@pytest.mark.parametrize("client_id", ["", "rdkafka", "grouplake-node-x@host:1", "grouplake-node-1@host", "grouplake-node-1@:"])
def test_a_client_id_of_another_program(client_id: str) -> None:
    assert node_of(client_id) is None
