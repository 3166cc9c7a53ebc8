"""Tables of polls beside those of the log of one cluster: no poll loses a group, and both are equal at quiet moments."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventually import equal_to, eventually
from live_lag import LiveLag
from living_groups import LivingGroups
from poll_comparison import UNKNOWN_TO_A_POLL, difference, known_to_both, polled, rows

from coordinator_core.codec import Record, decode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.health import DEFAULT_SETTINGS
from coordinator_core.log.columns import to_log_records
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.job.run_polls import PollUnanswered

#: Events between two reads.
_UNREAD_EVENTS = 3
_NEVER_MS = 10**12
#: Without rules about what happens between two polls: rebalances, jumps of an offset that has moved on meanwhile, windows of
#: commits, and silence, which is compared with the distances of commits.
_STATUS = DEFAULT_SETTINGS._replace(
    storm_rebalances=1_000_000,
    jump_window_ms=1,
    window_commits=1,
    least_silence_ms=_NEVER_MS,
    few_commits_silent_ms=_NEVER_MS,
)
_HISTORIES = ("batches", "offset_history", "group_history", "membership_history", "ownership_history")


class PolledBesideLog:
    """Both folders of tables. `polled_at` has the addresses for polls if they differ from those of the log, `options` theirs."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        folder: Path,
        groups: LivingGroups,
        *,
        era: str,
        polled_at: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        with KafkaSource(f"kafka://{bootstrap}/{topic}") as source:
            names = {topic_id: (name, "cluster") for topic_id, name in source.topic_ids().items()}
        self.log = LiveLag(bootstrap, folder / "log", era=Era.named(era), names=lambda: names, status=_STATUS)
        self.polls = folder / "polls"
        #: Polls, those in which not every broker or known group was answered, and those that no broker answered.
        self.count, self.incomplete, self.unanswered = 0, 0, 0
        self._bootstrap, self._groups = bootstrap, groups
        self._options = {"era": era, "status": _STATUS, **(options or {})}
        self._polled_at = polled_at or bootstrap
        self._seen: set[str] = set()

    def read(self) -> None:
        """Read the log and poll. Histories have the last change of a batch, so the log is read as often as there are polls."""
        self.log.sample()
        self.poll()

    def poll(self) -> None:
        """Poll alone. A group that the tables had, and that was not deleted, is still in them."""
        self.count += 1
        try:
            lines = polled(self._polled_at, self.polls, **self._options)
        except PollUnanswered:
            self.unanswered += 1
            return
        found = {row["group_id"] for row in rows(self.polls, "SELECT group_id FROM groups")}
        assert (self._seen & self._groups.existing) - found == set(), lines
        self._seen = found
        (batch,) = rows(self.polls, "SELECT records_behind FROM batches ORDER BY batch_id DESC LIMIT 1")
        self.incomplete += batch["records_behind"] != 0

    def live(self, events: int) -> None:
        """Let events happen, and read both sources now and then, in the middle of rebalances too."""
        for number in range(events):
            if self._groups.happen() == "deletion":
                # it takes two complete polls; to one that sees the next commit instead, that is a rewind
                eventually("the polls have found the deletion", self._found_deletions, pause_seconds=0)
            elif number % _UNREAD_EVENTS == 0:
                self.read()

    def agree_for(self, minutes: float, events: int) -> int:
        """Compare both sources after each `events` for a time. Returns the number of comparisons."""
        comparisons, until = 0, time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            self.live(events)
            self.expect_equal()
            comparisons += 1
        return comparisons

    def expect_equal(self) -> None:
        """Wait until the groups are quiet and both folders have the same tables."""
        self._groups.settle()
        eventually("both sources make the same tables", self._differences, equal_to({}))

    def expect_true_histories(self) -> None:
        """Every change that polls have found is one that the log has, and both folders are sound."""
        self._expect_derivable()
        self._expect_no_invented_deletion()
        for root in (self.log.root, self.polls):
            assert main(["check", "--tables", str(root)]) == 0

    def contents(self) -> dict[str, int]:
        """Rows of the histories of the polls."""
        return {table: rows(self.polls, f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in _HISTORIES}

    def _found_deletions(self) -> bool:
        self._groups.poll()
        self.read()
        return not self._seen & (self._groups.deleted - self._groups.existing - self._groups.aborted)

    def _differences(self) -> dict[str, list[str]]:
        self._groups.poll()
        self.read()
        kinds = self._groups.kinds
        return {
            table: one_sided
            for table in UNKNOWN_TO_A_POLL
            if (one_sided := difference(*(known_to_both(root, table, kinds) for root in (self.log.root, self.polls))))
        }

    def _expect_derivable(self) -> None:
        """Every commit, member and removal in the histories of the polls is one that the log has."""
        written: set[tuple[Any, ...]] = set()
        with KafkaSource(f"kafka://{self._bootstrap}/__consumer_offsets") as source:
            for partition, end in source.end_offsets().items():
                for columns in source.read_columns(partition, 0, end):
                    for record in to_log_records(columns, partition):
                        found = decode(record.key, record.value)
                        if isinstance(found, Record) and isinstance(found.key, OffsetCommitKey):
                            offset = found.value.offset if isinstance(found.value, OffsetCommitValue) else None
                            written.add((found.key.group, found.key.topic, found.key.partition, offset))
        polled_commits = rows(self.polls, "SELECT group_id, topic, partition, committed_offset FROM offset_history")
        assert {tuple(row.values()) for row in polled_commits} <= written
        changes = (
            "SELECT DISTINCT group_id, change, member_id FROM group_history WHERE change IN ('member_joined', 'member_left')"
        )
        of_polls, of_log = ({tuple(row.values()) for row in rows(root, changes)} for root in (self.polls, self.log.root))
        assert of_polls <= of_log
        counts = "SELECT group_id, count(*) AS n FROM rebalances GROUP BY group_id"
        seen, made = ({row["group_id"]: row["n"] for row in rows(root, counts)} for root in (self.polls, self.log.root))
        assert {group: count for group, count in seen.items() if count > made.get(group, 0)} == {}

    def _expect_no_invented_deletion(self) -> None:
        """Polls miss or remove a group, or an offset of it, only if a client or its coordinator has removed it."""
        removed = "SELECT group_id FROM offset_history WHERE change = 'tombstone'"
        missing = "SELECT group_id FROM group_history WHERE change IN ('poll_missing', 'group_deleted')"
        of_polls, of_log = (
            {row["group_id"] for row in rows(root, f"{removed} UNION {missing}")} for root in (self.polls, self.log.root)
        )
        assert of_polls <= self._groups.deleted | of_log
