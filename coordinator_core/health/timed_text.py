"""Text that knows where its times are, so that a reader can print them in another zone.

A phrase marks a time where it writes it; `timed_text` makes the finished sentence of it, without the marks. The marks are
noncharacters of Unicode. `visible` escapes those, so no name within a sentence is ever taken for a time, whatever it looks like.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_START, _TEXT, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_UNMARKED = dict.fromkeys(map(ord, (_START, _TEXT, _END)))
_MARKED = re.compile(f"{_START}(-?[0-9]+){_TEXT}([^{_START}{_TEXT}{_END}]*){_END}")


class TextTime(NamedTuple):
    """The place of a time within a text, and what it means, in ms."""

    start: int
    end: int
    ms: int


class TimedText(str):
    """A text with the places of its times, in their order. A text that was cut out of it, or joined, is a plain one."""

    times: tuple[TextTime, ...]

    def __new__(cls, text: str, times: Iterable[TextTime] = ()) -> "TimedText":
        made = super().__new__(cls, text)
        made.times = tuple(times)
        return made


def marked(text: str, ms: int) -> str:
    """A time for a sentence that `timed_text` makes."""
    return f"{_START}{ms}{_TEXT}{text}{_END}"


def timed_text(sentence: str) -> TimedText:
    """The sentence without marks, with the times that were marked."""
    if _START not in sentence:
        return TimedText(sentence)
    parts: list[str] = []
    times: list[TextTime] = []
    end = length = 0
    for found in _MARKED.finditer(sentence):
        before, time = sentence[end : found.start()], found[2]
        start = length + len(before)
        length = start + len(time)
        parts += [before, time]
        times.append(TextTime(start, length, int(found[1])))
        end = found.end()
    return TimedText("".join([*parts, sentence[end:]]), times)


def with_marks(text: str) -> str:
    """The text with its times marked, for a longer sentence. A mark that stands in it is none of ours, and is left out."""
    parts: list[str] = []
    end = 0
    for time in text.times if isinstance(text, TimedText) else ():
        parts += [text[end : time.start].translate(_UNMARKED), marked(text[time.start : time.end], time.ms)]
        end = time.end
    return "".join([*parts, text[end:].translate(_UNMARKED)])
