"""The differences between brokers and the coordinator that are meant to be: the table of the harness.

Every entry must be needed by some seed of the full run, unless the brokers' side of it is random.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from differential_run import Difference

_BOTH = ("3", "4")


@dataclass(frozen=True)
class Known:
    """A field that may differ. `path` is a regular expression; `when` looks at the difference, its request included."""

    path: str
    reason: str
    when: Callable[[Difference], bool] = lambda _: True
    eras: tuple[str, ...] = _BOTH
    #: Not every run has it.
    is_random: bool = False

    def covers(self, found: Difference, era: str) -> bool:
        return era in self.eras and re.fullmatch(self.path, found.path) is not None and self.when(found)


def _is_about(topic: str) -> Callable[[Difference], bool]:
    return lambda found: f"'{topic}'" in str(found.step)


def _has_empty_topic(found: Difference) -> bool:
    return any(not topic["partitions"] for topic in found.step.body["topics"])


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


KNOWN: Sequence[Known] = (
    Known(
        r"(FETCH|LIST_OFFSETS)\..*",
        "The coordinators' own topics cannot be read by clients: their log is read from the folder.",
        _is_about("__consumer_offsets"),
    ),
    Known(
        r"PRODUCE\.responses\.partition_responses\.error_code",
        "Records for the coordinators' own topics are refused before their transaction is verified.",
        lambda found: "__consumer_offsets" in str(found.step) and found.ours in (17, 21),
    ),
    Known(
        r"PRODUCE\.responses\.partition_responses\.error_message",
        "Most errors have a text here that names the value; brokers send a text for some of them.",
        lambda found: _is_text(found.theirs) and _is_text(found.ours),
    ),
    Known(
        r"(OFFSET_COMMIT|TXN_OFFSET_COMMIT|OFFSET_DELETE)\.topics",
        "A topic without partitions is left out of the response.",
        _has_empty_topic,
    ),
    Known(
        r"FETCH\.responses\.partitions\.records",
        "Batches are sent as they are stored to clients of Fetch below v4; brokers convert them.",
        lambda found: found.step.version < 4,
        eras=("3",),
    ),
    Known(
        r"FIND_COORDINATOR\.coordinators\.error_code",
        "Brokers of 3.9 find no coordinator of share groups (COORDINATOR_NOT_AVAILABLE); later ones refuse the key.",
        lambda found: found.step.version >= 6 and found.step.body["key_type"] == 2 and found.theirs == 15,
        eras=("3",),
    ),
    Known(
        r"JOIN_GROUP\.(leader|members|member_id)",
        "When a leader leaves during a rebalance, brokers take any member of a hash map as the next one.",
        lambda found: bool(found.theirs or found.path.endswith("members")) and bool(found.ours or found.path.endswith("members")),
        is_random=True,
    ),
)


def stale_entries(needed: Collection[Known], era: str) -> list[Known]:
    """The entries of an era that no difference needs, and that must be removed."""
    return [entry for entry in KNOWN if era in entry.eras and not entry.is_random and entry not in needed]


def known_entry(found: Difference, era: str) -> Known | None:
    """The entry that covers a difference."""
    return next((entry for entry in KNOWN if entry.covers(found, era)), None)
