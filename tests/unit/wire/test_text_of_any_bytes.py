"""Text of messages that is not UTF-8, as brokers read it."""

import struct

import pytest

from coordinator_core.protocol import apis
from coordinator_core.protocol.groups import DescribeGroupRequest
from coordinator_core.wire import read_request
from coordinator_core.wire.text import decode_text

REPLACED = "\N{REPLACEMENT CHARACTER}"

#: Bytes → `new String(bytes, UTF_8)` of Java 17. "?" stands for U+FFFD.
OF_JAVA = {
    "41": "A",
    "fffe80": "???",
    "c2": "?",
    "c241": "?A",
    "c080": "??",
    "e0": "?",
    "e08080": "???",
    "e282": "?",
    "e28241": "?A",
    "eda0": "?",
    "eda080": "?",
    "edbfbf": "?",
    "edbf41": "?A",
    "eda080edb080": "??",
    "8feda0": "??",
    "e1eda0": "??",
    "c2edbf": "??",
    "e0edbfc2": "???",
    "ed9f": "?",
    "ed9fbf": "\ud7ff",
    "ee8080": "\ue000",
    "f0": "?",
    "f09f": "?",
    "f09f98": "?",
    "f09f9880": "\N{GRINNING FACE}",
    "f09f41": "?A",
    "f0808080": "????",
    "f4908080": "????",
    "f48fbfbf": "\U0010ffff",
    "f5808080": "????",
    "f3edbf": "??",
    "fcedbf": "??",
}


@pytest.mark.parametrize("data", OF_JAVA)
def test_text_is_what_java_makes_of_the_bytes(data: str) -> None:
    assert decode_text(bytes.fromhex(data)) == OF_JAVA[data].replace("?", REPLACED)


@pytest.mark.parametrize(("client_id", "text"), [(b"\xff\xfe", REPLACED * 2), (b"\xed\xa0\x80", REPLACED)])
def test_client_ids(client_id: bytes, text: str) -> None:
    frame = struct.pack(">hhih", apis.LIST_GROUPS.number, 0, 7, len(client_id)) + client_id
    assert read_request(frame).header.client_id == text


@pytest.mark.parametrize("tags", [b"\x00", b"\x01\x63\x02\xff\xfe"], ids=["no tagged fields", "an unknown tagged field"])
def test_names_beside_tagged_fields(tags: bytes) -> None:
    header = struct.pack(">hhi", apis.DESCRIBE_GROUPS.number, 5, 7) + b"\x00\x01c\x00"
    request = read_request(header + b"\x02\x03\xff\xfe\x00" + tags)
    assert request.parts == (DescribeGroupRequest(REPLACED * 2),)
