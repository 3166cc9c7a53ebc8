"""The finding behind an alert in words: placeholders of its annotations."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from coordinator_core.health.finding_phrases import owners
from pipelines.lag.reports.incidents import incidents_of, reported, since_of
from pipelines.runtime.timestamps import to_ms

#: Placeholders of every kind of rule about groups; those without a value are empty.
#: `finding` has all sentences, `advice` those about the consequence and the next step.
WORDS = ("detail", "since", "owner", "consequence", "next_step", "finding", "advice")

Row = Mapping[str, Any]


def finding_words(status: Row, rules: Collection[str], topic: str | None = None, partition: int | None = None) -> dict[str, str]:
    """The words about the first finding of one of these rules; without rules about the cause of the status.

    `status` is a row of `group_status`. Of an alert about a topic or partition, only findings about it or the group count.
    """
    wanted = [row for row in status["findings"] if _is_about(row, topic, partition)]
    found = reported(incidents_of(wanted), rules)
    if found is None:
        return {}
    text = found.text(to_ms(status["evaluated_at"]))
    since = since_of(found.found)
    words = {
        "detail": text.detail,
        "since": "" if since is None else since.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "owner": owners(found.found),
        "consequence": text.consequence,
        "next_step": text.next_step,
        "finding": _joined([text.detail, text.consequence, text.next_step]),
        "advice": _joined([text.consequence, text.next_step]),
    }
    return {name: value for name, value in words.items() if value}


def _is_about(finding: Row, topic: str | None, partition: int | None) -> bool:
    if topic is None or finding["topic"] is None:
        return True
    return bool(finding["topic"] == topic and partition in (None, finding["partition"]))


def _joined(sentences: Sequence[str]) -> str:
    return " ".join(each for each in sentences if each)
