"""Statuses of groups as a word, a shape and a colour class. The most severe one comes first."""

from typing import NamedTuple


class StatusWords(NamedTuple):
    """Presentation of a status: `tone` is the CSS class of its colour."""

    word: str
    shape: str
    tone: str
    rank: int
    meaning: str


_ROWS = (
    ("REWIND", "▲", "bad", "the position went back"),
    ("STALL", "▲", "bad", "commits continue without progress"),
    ("STOP", "▲", "bad", "commits have stopped"),
    ("ERR", "▲", "bad", "records are lost, or a transaction blocks the group"),
    ("WARN", "◆", "warn", "needs attention soon"),
    ("UNKNOWN", "○", "unknown", "the lag of a partition is unknown"),
    ("OK", "●", "ok", "no rule found a defect"),
    ("NOTFOUND", "○", "unknown", "no offsets and no record"),
)

STATUSES = {word: StatusWords(word, shape, tone, rank, meaning) for rank, (word, shape, tone, meaning) in enumerate(_ROWS)}

#: Of groups whose status was not computed: before the first sample.
NO_STATUS = StatusWords("no status", "○", "unknown", STATUSES["UNKNOWN"].rank, "there is no sample of log ends yet")


def status_words(status: str | None) -> StatusWords:
    """Words of a status; `no status` for None and for one that a later version may add."""
    return STATUSES.get(status or "", NO_STATUS)
