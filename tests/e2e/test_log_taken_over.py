"""The coordinator continues a broker's log with open transactions: no producer id is given out again."""

from pathlib import Path

import pytest
from taken_over_logs import DONE, ERAS, OFFSETS_PARTITIONS, OPEN, PENDING, TRANSACTION_PARTITIONS, taken_over
from transaction_scenario import PLACE, PLAIN, TransactionClient, transaction_client

from coordinator_core.protocol import apis
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetFetchRequest
from coordinator_core.protocol.transactions import DescribeTransactionRequest
from coordinator_core.service.transactions.producer_id_file import FILE
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.long

#: More than open transactions of the log.
NEW = tuple(f"new-{number}" for number in range(9))


def coordinator(version: str, log: Path) -> PrivateCoordinator:
    return PrivateCoordinator(
        log,
        era=ERAS[version],
        offsets_topic_num_partitions=OFFSETS_PARTITIONS,
        transaction_state_log_num_partitions=TRANSACTION_PARTITIONS,
    )


def offset_of(client: TransactionClient, name: str) -> tuple[ErrorCode, int]:
    """Error and offset of the stable commit of an id's group."""
    request = OffsetFetchRequest(f"group-{name}", (PLACE,), require_stable=True)
    found = client.wire.ask(apis.OFFSET_FETCH, 8, request).offsets[PLACE]
    return found.error, found.offset


def described(client: TransactionClient, name: str) -> tuple[str, int]:
    found = client.wire.ask(apis.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionRequest(name))
    return found.state, found.producer.producer_id


@pytest.mark.parametrize("version", ERAS)
def test_new_ids_are_above_all_ids_of_the_log(version: str, tmp_path: Path) -> None:
    log = taken_over(version, tmp_path)
    with coordinator(version, log) as ours, transaction_client(ours.bootstrap) as client:
        known = {described(client, name)[1] for name in (DONE, *OPEN)}
        assert len(known) == 1 + len(OPEN)
        assert {described(client, name)[0] for name in OPEN} == {"Ongoing"}
        producers = {name: client.init(name, PLAIN) for name in NEW}
        for name, producer in producers.items():
            client.add_offsets(name, producer, PLAIN)
            client.commit_offset(name, producer, PLAIN, 5)
            client.end(name, producer, PLAIN, commit=True)
            assert described(client, name)[1] > max(known)
        # nothing of the open transactions was committed with them
        assert {offset_of(client, name)[0] for name in OPEN} == {ErrorCode.UNSTABLE_OFFSET_COMMIT}
        assert offset_of(client, DONE) == (ErrorCode.NONE, 42)
        assert client.init(None, PLAIN).producer_id > max(known)
        ours.kill()
    assert (log / FILE).exists()
    used = {producer.producer_id for producer in producers.values()}
    with coordinator(version, log) as ours, transaction_client(ours.bootstrap) as client:
        assert client.init("after the restart", PLAIN).producer_id > max(used)


@pytest.mark.parametrize("version", ERAS)
def test_a_transaction_of_the_log_is_committed_by_its_own_producer_only(version: str, tmp_path: Path) -> None:
    with coordinator(version, taken_over(version, tmp_path)) as ours, transaction_client(ours.bootstrap) as client:
        found = client.wire.ask(apis.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionRequest(OPEN[0]))
        client.end(OPEN[0], found.producer, PLAIN, commit=True)
        client.offset(OPEN[0])
        assert client.answers[-1] == (f"offset {OPEN[0]}", str(PENDING))
        assert {offset_of(client, name)[0] for name in OPEN[1:]} == {ErrorCode.UNSTABLE_OFFSET_COMMIT}
