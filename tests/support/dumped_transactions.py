"""Lines of Kafka's dump tool for both topics of transactions, without what differs between two runs of one coordinator."""

import json
import re
from collections.abc import Iterable
from typing import Any

_BATCH = re.compile(
    r"baseOffset: \d+ .*producerId: (?P<producer>-?\d+) producerEpoch: (?P<epoch>-?\d+) "
    r".*isTransactional: (?P<transactional>\w+) isControl: (?P<control>\w+)"
)
_RECORD = re.compile(r"\| offset: .*? (?:endTxnMarker: (?P<marker>\w+)|key: (?P<key>.*?) payload: (?P<payload>.*))")
_TIME = re.compile(r".*Timestamp(Ms)?")
#: Producer ids of an epoch overflow, which brokers before 4.3 do not write.
_NOT_WRITTEN = ("previousProducerId", "nextProducerId")


class _Numbers(dict[int, int]):
    """Producer ids in the order of their first appearance."""

    def __missing__(self, producer_id: int) -> int:
        self[producer_id] = number = producer_id if producer_id < 0 else len(self)
        return number


def transaction_states(lines: Iterable[str]) -> dict[str, list[Any]]:
    """The payloads of `__transaction_state` by transactional id."""
    found: dict[str, list[Any]] = {}
    numbers: dict[str, _Numbers] = {}
    for key, payload in _records(lines):
        transactional_id = key["data"]["transactionalId"]
        found.setdefault(transactional_id, []).append(_state(payload, numbers.setdefault(transactional_id, _Numbers())))
    return found


def _records(lines: Iterable[str]) -> Iterable[tuple[Any, Any]]:
    for line in lines:
        match = _RECORD.match(line)
        if match is not None and match["key"] is not None:
            yield _json(match["key"]), _json(match["payload"])


def _json(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


def _state(payload: Any, numbers: _Numbers) -> Any:
    if not isinstance(payload, dict):
        return payload
    data = {name: value for name, value in payload["data"].items() if name not in _NOT_WRITTEN}
    data["producerId"] = numbers[data["producerId"]]
    data |= {name: min(value, 0) for name, value in data.items() if _TIME.fullmatch(name)}
    partitions = data["transactionPartitions"]
    if partitions is not None:
        data["transactionPartitions"] = sorted((each["topic"], sorted(each["partitionIds"])) for each in partitions)
    return {**payload, "data": data}


def group_offsets(lines: Iterable[str]) -> dict[str, list[Any]]:
    """Offsets and markers of `__consumer_offsets` by group, each with the kind of its batch; markers follow their group.

    A producer of the scenario belongs to one group.
    """
    found: dict[str, list[Any]] = {}
    groups: dict[int, str] = {}
    batch: dict[str, str] = {}
    numbers: dict[str, _Numbers] = {}
    for line in lines:
        head, record = _BATCH.match(line), _RECORD.match(line)
        if head is not None:
            batch = head.groupdict()
        elif record is not None:
            producer = int(batch["producer"])
            key, payload = (None, record["marker"]) if record["marker"] else (_json(record["key"]), _json(record["payload"]))
            group = groups.get(producer, "") if key is None else key["data"]["group"]
            if producer >= 0:
                groups.setdefault(producer, group)
            if isinstance(payload, dict):
                data = {name: min(value, 0) if _TIME.fullmatch(name) else value for name, value in payload["data"].items()}
                payload = {**payload, "data": data}
            number = numbers.setdefault(group, _Numbers())[producer]
            kind = (number, batch["epoch"], batch["transactional"], batch["control"])
            found.setdefault(group, []).append((kind, key, payload))
    return found
