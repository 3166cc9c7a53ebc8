"""InitProducerId v6 (KIP-939) and the versions of the transaction APIs, beside brokers of 4.3.0.

By default neither they nor the coordinator offer v6. With `unstable.api.versions.enable` brokers do; the transaction coordinator
answers its fields as they do.
"""

import struct
from pathlib import Path

import pytest
from describe_layouts import Layout, Reader, array
from eventually import eventually
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from protocol_connection import ProtocolConnection
from transaction_harness import ID, TransactionHarness
from transaction_scenario import transaction_client

from coordinator_core.protocol import apis
from coordinator_core.protocol.apis import TRANSACTION_APIS
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import InitProducerIdRequest, InitProducerIdResponse
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker, pytest.mark.slow]

BROKER, LAST_STABLE, UNSTABLE = "4.3.0", 5, 6
OF_TRANSACTIONS = [*TRANSACTION_APIS.values(), apis.TXN_OFFSET_COMMIT, apis.WRITE_TXN_MARKERS, apis.DESCRIBE_PRODUCERS]
MINUTE_MS = 60_000
REQUESTS = (
    InitProducerIdRequest(ID, MINUTE_MS),
    InitProducerIdRequest(ID, MINUTE_MS, enable_two_phase_commit=True),
    InitProducerIdRequest(ID, -5, enable_two_phase_commit=True),
    InitProducerIdRequest(ID, MINUTE_MS, keep_prepared=True),
    InitProducerIdRequest(ID, MINUTE_MS, enable_two_phase_commit=True, keep_prepared=True),
    InitProducerIdRequest(ID, -5),
    InitProducerIdRequest(ID, -5, keep_prepared=True),
    InitProducerIdRequest("", MINUTE_MS, enable_two_phase_commit=True),
    InitProducerIdRequest("", MINUTE_MS, keep_prepared=True),
    InitProducerIdRequest(ID, MINUTE_MS, ProducerEpoch(0, -1), enable_two_phase_commit=True),
    InitProducerIdRequest(ID, MINUTE_MS),
)
_RESPONSE: Layout = (
    ("throttle_ms", "int32"),
    ("error", "int16"),
    ("id", "int64"),
    ("epoch", "int16"),
    ("ongoing_id", "int64"),
    ("ongoing_epoch", "int16"),
)
_RESPONSE_HEADER_BYTES = 5


def frame(request: InitProducerIdRequest, version: int) -> bytes:
    """The wire form, in which versions below v6 lack the two flags."""
    head = struct.pack(">hhih", apis.INIT_PRODUCER_ID.number, version, 0, -1) + b"\x00"
    # an array of one text is the text with its length, after one byte
    name = array([request.transactional_id or ""])[1:]
    fields = struct.pack(">iqh", request.timeout_ms, *request.producer)
    flags = bytes((request.enable_two_phase_commit, request.keep_prepared)) if version >= UNSTABLE else b""
    return head + name + fields + flags + b"\x00"


def answer(bootstrap: str, request: InitProducerIdRequest, version: int) -> bytes:
    with ProtocolConnection(bootstrap, "test") as connection:
        connection.send_bytes(frame(request, version))
        return connection.receive_bytes()


def unstable_answer(bootstrap: str, request: InitProducerIdRequest) -> InitProducerIdResponse:
    found = Reader(answer(bootstrap, request, UNSTABLE), _RESPONSE_HEADER_BYTES).value(_RESPONSE)
    # always without the transaction that a restarted client would continue
    assert (found["ongoing_id"], found["ongoing_epoch"]) == (-1, -1)
    return InitProducerIdResponse(ErrorCode(found["error"]), ProducerEpoch(found["id"], found["epoch"]))


def await_coordinator(bootstrap: str) -> None:
    with transaction_client(bootstrap) as client:
        client.await_coordinator(ID)


def test_the_versions_of_transactions_are_those_of_a_broker(tmp_path: Path) -> None:
    with PrivateBroker(BROKER) as broker, PrivateCoordinator(tmp_path / "log") as ours:
        found = []
        for bootstrap in (broker.bootstrap, ours.bootstrap):
            with ProtocolConnection(bootstrap, "test") as connection:
                request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
                listed = connection.request(request, ApiVersionsResponse, 3).api_keys
            versions = {api.api_key: (api.min_version, api.max_version) for api in listed}
            found.append({api.name: versions[api.number] for api in OF_TRANSACTIONS})
            await_coordinator(bootstrap)
            for refused in (InitProducerIdRequest(ID, MINUTE_MS), InitProducerIdRequest(ID, MINUTE_MS, keep_prepared=True)):
                with pytest.raises(ConnectionError):
                    answer(bootstrap, refused, UNSTABLE)
            assert answer(bootstrap, REQUESTS[0], LAST_STABLE)
        theirs, mine = found
        assert mine == theirs
        assert mine["INIT_PRODUCER_ID"] == (0, LAST_STABLE)


@pytest.mark.parametrize("is_enabled", [False, True])
def test_the_fields_of_two_phase_commit_have_the_answers_of_a_broker(is_enabled: bool) -> None:
    properties = {
        "unstable.api.versions.enable": "true",
        "transaction.two.phase.commit.enable": str(is_enabled).lower(),
    }
    at = TransactionHarness(transaction_two_phase_commit_enable=is_enabled)
    with PrivateBroker(BROKER, properties=properties) as broker:
        await_coordinator(broker.bootstrap)
        busy = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
        first = eventually(
            "the coordinator has loaded its log",
            lambda: unstable_answer(broker.bootstrap, REQUESTS[0]),
            lambda response: response.error not in busy,
        )
        theirs = [first, *(unstable_answer(broker.bootstrap, request) for request in REQUESTS[1:])]
    assert theirs == [at.send(request).response for request in REQUESTS]
    accepted = ErrorCode.NONE if is_enabled else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert theirs[1].error is accepted
