"""`grouplake show` prints genuine logs as Kafka's own tools do."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import genuine
import pytest
from patience import PATIENCE_SECONDS
from segment_builder import LogBuilder

from coordinator_core.codec import Malformed, NoAssignment, Record, decode_assignment, decode_subscription, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.text.json_converter import converter
from pipelines.cli import main

WITH_DUMP = [version for version in genuine.SEGMENT_VERSIONS if not version.startswith("0.")]
_DECODERS = {
    "subscription": ("ConsumerProtocolSubscription", decode_subscription),
    "assignment": ("ConsumerProtocolAssignment", decode_assignment),
}


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["show", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def dumped(version: str) -> list[dict[str, Any]]:
    """The data records of Kafka's dump tool by partition and offset, with numbers where the formatters print numbers."""
    found = []
    for line in genuine.dump(version):
        if line.marker:
            continue
        ((key, payload),) = re.findall(r"key: (\{.*\}) payload: (.*)$", line.text)
        key, value = json.loads(key), None if payload == "<DELETE>" else json.loads(payload)
        key["type"] = int(key["type"])
        if value is not None:
            value["version"] = int(value["version"])
        found.append({"partition": line.partition, "offset": line.offset, "key": key, "value": value})
    return sorted(found, key=lambda record: (record["partition"], record["offset"]))


def with_members_decoded(record: dict[str, Any]) -> dict[str, Any]:
    """Decode members as the dump tool does for groups of type "consumer"; the formatters print base64."""
    data = (record["value"] or {}).get("data", {})
    if record["key"]["type"] == 2 and data.get("protocolType") == "consumer":
        for member in data["members"]:
            for field, (layout, decode) in _DECODERS.items():
                raw = base64.b64decode(member[field])
                decoded = decode(raw)
                if not isinstance(decoded, Malformed | NoAssignment):
                    member[field] = converter(layout, min(int.from_bytes(raw[:2], "big"), 3))(decoded)
    return record


@pytest.mark.parametrize("version", WITH_DUMP)
def test_json_is_what_the_dump_tool_decodes(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = genuine.segments_dir(version, tmp_path)
    lines = shown(capsys, "--source", f"segments:{log}", "--place")
    assert [with_members_decoded(json.loads(line)) for line in lines] == dumped(version)
    assert shown(capsys, "--source", f"segments:{log}", "--format", "json") == [without_position(line) for line in lines]


def position(line: str) -> tuple[int, int]:
    record = json.loads(line)
    return record["partition"], record["offset"]


def without_position(line: str) -> str:
    return re.sub(r'^\{"partition":\d+,"offset":\d+,', "{", line)


@pytest.mark.parametrize("version", genuine.VERSIONS)
def test_json_lines_and_segments_hold_the_same_records(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = genuine.DATA / f"kafka-{version}.records.jsonl"
    segments = shown(capsys, "--source", f"segments:{genuine.segments_dir(version, tmp_path)}", "--position")
    lines = shown(capsys, "--source", f"jsonl:{dump}", "--position")
    assert len(lines) == len(dump.read_text().splitlines())
    # the segments were copied a moment after the consumer had read the topic
    end = max(position(line) for line in lines if position(line)[0] == 11) if version.startswith("0.") else (99, 0)
    assert lines == [line for line in segments if position(line)[0] != 11 or position(line) <= end]


def test_as_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = f"segments:{genuine.segments_dir('2.8.2', tmp_path)}"
    program = Path(sys.executable).with_name("grouplake")
    found = subprocess.run(
        [program, "show", "--source", source], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    assert found.stdout.splitlines() == shown(capsys, "--source", source)
    assert found.stderr == ""


def scala_line(record: dict[str, Any]) -> str | None:
    """The line of the formatters of 3.x, built from the dump tool's output for a record."""
    key, value = record["key"]["data"], record["value"] and record["value"]["data"]
    if record["key"]["type"] in (0, 1):
        what = "NULL"
        if value:
            epoch = value.get("leaderEpoch", -1)
            leader = "Optional.empty" if epoch == -1 else f"Optional[{epoch}]"
            what = (
                f"OffsetAndMetadata(offset={value['offset']}, leaderEpoch={leader}, "
                f"metadata={value['metadata']}, commitTimestamp={value['commitTimestamp']}, expireTimestamp=None)"
            )
        return f"[{key['group']},{key['topic']},{key['partition']}]::{what}"
    if record["key"]["type"] != 2:
        return None
    if not value:
        return f"{key['group']}::NULL"
    members = ", ".join(
        f"{m['memberId']} -> MemberMetadata(memberId={m['memberId']}, "
        f"groupInstanceId={'None' if m['groupInstanceId'] is None else 'Some(' + m['groupInstanceId'] + ')'}, "
        f"clientId={m['clientId']}, clientHost={m['clientHost']}, sessionTimeoutMs={m['sessionTimeout']}, "
        f"rebalanceTimeoutMs={m['rebalanceTimeout']}, supportedProtocols=List({value['protocol']}))"
        for m in value["members"]
    )
    state = "Stable" if value["members"] else "Empty"
    protocol_type = f"Some({value['protocolType']})" if value["protocolType"] else "None"
    return (
        f"{key['group']}::GroupMetadata(groupId={key['group']}, generation={value['generation']}, "
        f"protocolType={protocol_type}, currentState={state}, members=HashMap({members}))"
    )


@pytest.mark.parametrize("version", WITH_DUMP)
def test_classic_lines(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = genuine.segments_dir(version, tmp_path)
    lines = shown(capsys, "--source", f"segments:{log}", "--format", "classic", "--era", "3")
    expected = [line.replace("HashMap()", "Map()") for record in dumped(version) if (line := scala_line(record))]
    assert [line.replace("HashMap()", "Map()") for line in lines] == expected


def test_classic_lines_of_an_old_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = f"segments:{genuine.segments_dir('0.10.2.2', tmp_path)}"
    lines = shown(capsys, "--source", source, "--format", "classic", "--era", "0.10", "--position")
    assert lines[3] == (
        f"8-0 [simple-010,clicks,2]::[OffsetMetadata[10,{'m' * 170}\0],CommitTime 1795227249220,ExpirationTime 1795313649220]"
    )
    stable = re.compile(
        r"\d+-\d+ billing-workers::\[billing-workers,Some\(consumer\),Stable,"
        r"Map\((\S+) -> \[\1,w1,/127\.0\.0\.1,10000\]\)\]"
    )
    assert [line for line in lines if stable.fullmatch(line)]


def test_unprintable_records_are_reported_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogBuilder(tmp_path)
    commit = encode(Record(1, OffsetCommitKey("g", "t", 0), OffsetCommitValue(5, commit_timestamp=1), 3))
    log.append(0, [(b"\x00\x63", b"new"), commit, (None, b"x"), (commit[0], b"\x00\x01")])
    assert main(["show", "--source", f"segments:{tmp_path}"]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert [line.partition(": ")[0] for line in err.splitlines()] == [f"partition 0 offset {n}" for n in (0, 2, 3)]
    assert "unknown record type 99" in err


def test_a_corrupt_batch_is_reported_and_a_torn_end_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogBuilder(tmp_path)
    commit = encode(Record(1, OffsetCommitKey("g", "t", 0), OffsetCommitValue(5, commit_timestamp=1), 3))
    log.append(0, [commit])
    whole = log.segment(0).stat().st_size
    log.append(0, [commit])
    log.tear(0, 1)
    assert main(["show", "--source", f"segments:{tmp_path}"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    (line,) = err.splitlines()
    assert f"{log.segment(0)}: the last {whole - 1} bytes, from byte {whole} and offset 1, are an incomplete batch" in line
    data = bytearray(log.segment(0).read_bytes())
    data[whole - 2] ^= 1
    log.segment(0).write_bytes(data)
    assert main(["show", "--source", f"segments:{tmp_path}"]) == 1
    assert "checksum does not match" in capsys.readouterr().err
