"""Logs in tests/data that real brokers wrote."""

import base64
import json
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator_core.log.entries import LogRecord
from pipelines.examples.log.example_log import unpack

DATA = Path(__file__).resolve().parents[1] / "data"

#: Versions with records.jsonl and expected.json.
VERSIONS = ("0.10.2.2", "2.8.2", "4.1.1")
#: Versions with segments.tar.gz.
SEGMENT_VERSIONS = (*VERSIONS, "4.3.0-share-streams")

#: `offsets.retention.minutes` of a coordinator that loads these logs: a hundred years, so that no commit expires.
RETENTION_MINUTES = 52_560_000

_DUMP_LINE = re.compile(
    r"__consumer_offsets-(?P<partition>\d+) \| offset: (?P<offset>\d+) "
    r".*?(?:endTxnMarker: (?P<marker>\w+) .*|key: .* payload: .*)$"
)


@dataclass(frozen=True)
class DumpLine:
    """One line of Kafka's own dump tool; `marker` is COMMIT or ABORT for a control record."""

    partition: int
    offset: int
    marker: str | None
    text: str


def segments_dir(version: str, into: Path) -> Path:
    """Extract the broker's segment files below `into` and return the log directory."""
    directory = into / f"kafka-{version}"
    if not directory.exists():
        with tarfile.open(DATA / f"kafka-{version}.segments.tar.gz") as archive:
            unpack(archive, directory)
    return directory


def records(version: str) -> list[LogRecord]:
    """The data records that a consumer saw, without transaction markers and producer ids."""
    lines = map(json.loads, (DATA / f"kafka-{version}.records.jsonl").read_text().splitlines())
    return [
        LogRecord(line["partition"], line["offset"], line["timestamp"], _decoded(line["key"]), _decoded(line["value"]))
        for line in lines
    ]


def expected(version: str) -> Any:
    """The broker's own answers for the log in this state."""
    return json.loads((DATA / f"kafka-{version}.expected.json").read_text())


def dump(version: str) -> list[DumpLine]:
    """The output of Kafka's dump tool for the segments, one record per line."""
    matches = map(_DUMP_LINE.match, (DATA / f"kafka-{version}.dump.txt").read_text().splitlines())
    return [DumpLine(int(m["partition"]), int(m["offset"]), m["marker"], m.string) for m in matches if m]


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
