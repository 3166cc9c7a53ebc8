"""`grouplake coordinator --nodes N` where it cannot start: one line that says why."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.segment_log import SegmentLog, new_topic_id
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.segment_log.topics_file import TOPICS_FILE, StoredTopic, write_topics
from pipelines.cli.main import main
from pipelines.examples.private.kafka.ports import PortReservation


def answer(capfd: pytest.CaptureFixture[str], folder: Path, *arguments: str, conf: str = "") -> tuple[int, list[str]]:
    """The exit code, and the lines of standard error that are not events."""
    configuration = folder / "coordinator.toml"
    configuration.write_text(f"[coordinator]\noffsets_topic_num_partitions = 2\n{conf}")
    given = {"--listen": "127.0.0.1:0", "--log": f"segments:{folder}/log", "--nodes": "2", "--conf": str(configuration)}
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    code = main(["coordinator", *(text for pair in given.items() for text in pair)])
    return code, [line for line in capfd.readouterr().err.splitlines() if not line.startswith("{")]


def log_of(folder: Path, topic: str) -> None:
    log = SegmentLog.open(folder / "log", topic, 2, SegmentLogSettings())
    for number in log.numbers:
        log.partition(number).append([AppendBatch([(b"key", b"value")])], 1_000)
    log.close()


def with_data(folder: Path) -> None:
    (folder / "log").mkdir()
    write_topics(folder / "log" / TOPICS_FILE, {"orders": StoredTopic(new_topic_id(), 1, TopicConfig({}))})


def with_transactions(folder: Path) -> None:
    log_of(folder, TRANSACTION_STATE_TOPIC)


def damaged(folder: Path) -> None:
    """A segment that is not the last one of partition 1 is damaged; its node finds that."""
    log_of(folder, OFFSETS_TOPIC)
    partition = folder / "log" / f"{OFFSETS_TOPIC}-1"
    (segment,) = partition.glob("*.log")
    segment.write_bytes(b"\0" * segment.stat().st_size)
    (partition / "00000000000000000005.log").touch()


@pytest.mark.parametrize(
    ("prepare", "text"),
    [
        (with_data, "has topic orders with data, which needs --nodes 1"),
        (with_transactions, "has transactional ids, which needs --nodes 1"),
        (damaged, f"{OFFSETS_TOPIC}-1/00000000000000000000.log"),
    ],
)
def test_folders(prepare: Callable[[Path], None], text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    prepare(tmp_path)
    code, lines = answer(capfd, tmp_path)
    (line,) = lines
    assert code == 1
    assert line.startswith("grouplake: ")
    assert text in line


@pytest.mark.parametrize(
    ("arguments", "conf", "text"),
    [
        (("--listen", "127.0.0.1:65535"), "", "2 nodes need the ports up to 65536; the highest one is 65535"),
        ((), "[coordinator.topics]\norders = { partitions = 1, data = true }", "coordinator.topics.orders has data"),
        (("--log", "kafka://127.0.0.1:1/topic"), "", "--nodes 2 is for a folder: start one command per node of a log topic"),
    ],
)
def test_options(arguments: tuple[str, ...], conf: str, text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, lines = answer(capfd, tmp_path, *arguments, conf=conf)
    assert code == 2
    assert text in lines[-1]


def test_an_address_in_use(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reserved = PortReservation()
    address = f"127.0.0.1:{reserved.port}"
    with socket.create_server(("127.0.0.1", reserved.port)):
        code, lines = answer(capfd, tmp_path, "--listen", address)
    assert (code, lines) == (1, [f"grouplake: cannot listen on {address}: Address already in use"])
    # the folder is free again
    log_of(tmp_path, OFFSETS_TOPIC)


def test_a_folder_in_use(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = SegmentLog.open(tmp_path / "log", OFFSETS_TOPIC, 2, SegmentLogSettings())
    code, (line,) = answer(capfd, tmp_path)
    log.close()
    assert (code, line) == (
        1,
        f"grouplake: {tmp_path}/log: another coordinator or a broker writes there (.lock is locked)",
    )
