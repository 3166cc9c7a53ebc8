"""Facts about topics for the lag of groups, from their settings, requested again every ten minutes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import NONE, FactColumns
from coordinator_core.log.errors import LogError
from pipelines.runtime.progress import Progress

if TYPE_CHECKING:
    from coordinator_core.sources.topic_settings import TopicSettings

_REFRESH_MS = 600_000
_NAMED_TOPICS = 3

#: Settings of topics, or the reason why they are unknown.
ReadSettings = Callable[[Iterable[str]], "Mapping[str, TopicSettings | str]"]


class TopicFactsCache:
    """Settings of topics by name. Topics whose settings cannot be read have no facts, which is reported once."""

    def __init__(self, read: ReadSettings, progress: Progress) -> None:
        self._read = read
        self._progress = progress
        self._settings: dict[str, TopicSettings | None] = {}
        self._read_at_ms: dict[str, int] = {}
        self._reported: set[str] = set()

    def refresh(self, topics: Sequence[str], now_ms: int) -> None:
        """Request the settings of new topics, and of those that were requested ten minutes ago; forget all other topics."""
        due = [name for name in topics if now_ms - self._read_at_ms.get(name, now_ms - _REFRESH_MS) >= _REFRESH_MS]
        if due:
            try:
                found = self._read(due)
            except LogError as error:
                # known settings remain valid for another period
                found = dict.fromkeys((name for name in due if name not in self._settings), str(error))
            self._settings |= {name: None if isinstance(each, str) else each for name, each in found.items()}
            self._report({name: each for name, each in found.items() if isinstance(each, str)})
        self._read_at_ms = {name: now_ms if name in set(due) else self._read_at_ms[name] for name in topics}
        self._settings = {name: self._settings[name] for name in topics if name in self._settings}

    def columns(self, topics: Sequence[str], topic_of_partition: Int64s) -> FactColumns:
        """Facts by partition. Offsets do not show whether a topic has had transactions, so that remains unknown."""
        settings = [self._settings.get(name) for name in topics]
        compacted = np.array([NONE if each is None else each.compacted for each in settings], np.int64)
        size_limited = np.array([NONE if each is None else each.size_limited for each in settings], np.int64)
        retention = [NONE if each is None or each.retention_ms is None else each.retention_ms for each in settings]
        return FactColumns(
            transactional=np.full(len(topic_of_partition), NONE),
            compacted=compacted[topic_of_partition],
            retention_ms=np.array(retention, np.int64)[topic_of_partition],
            size_limited=size_limited[topic_of_partition],
        )

    def cleanup_policies(self) -> dict[str, str]:
        """`cleanup.policy` by topic, as far as it is known."""
        return {name: each.cleanup_policy for name, each in self._settings.items() if each is not None}

    def has_append_times(self, topic: str) -> bool:
        """True if the broker sets the timestamps of the topic's records (LogAppendTime)."""
        settings = self._settings.get(topic)
        return settings is not None and settings.log_append_time

    def _report(self, unknown: Mapping[str, str]) -> None:
        for reason in sorted(set(unknown.values()) - self._reported):
            names = sorted(name for name, each in unknown.items() if each == reason)
            more = f" and {len(names) - _NAMED_TOPICS} more" if len(names) > _NAMED_TOPICS else ""
            self._progress(
                f"settings of topics {', '.join(names[:_NAMED_TOPICS])}{more} cannot be read ({reason}), so their retention and "
                "compaction are unknown: the user needs the ACL DescribeConfigs on them"
            )
        self._reported |= set(unknown.values())
