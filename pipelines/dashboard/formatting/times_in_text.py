"""Times within sentences, in elements of their own, so that a browser can print them in the zone of its reader.

A sentence knows where its times are (`coordinator_core.health.timed_text`). Any other text has none, whatever it looks like.
"""

from markupsafe import Markup, escape

from coordinator_core.health.timed_text import TimedText, marked, timed_text
from pipelines.dashboard.formatting.times import iso
from pipelines.runtime.timestamps import at_ms, to_ms
from pipelines.tables.data_age import DataAge

_TIME = Markup('<time datetime="{}">{}</time>')


def timed(text: str) -> Markup:
    """The escaped text with a `<time>` around each of its times."""
    parts: list[Markup] = []
    end = 0
    for time in text.times if isinstance(text, TimedText) else ():
        parts += [escape(text[end : time.start]), _TIME.format(iso(at_ms(time.ms)), text[time.start : time.end])]
        end = time.end
    return Markup("").join([*parts, escape(text[end:])])


def age_text(sentence: str, age: DataAge) -> TimedText:
    """A sentence of an age, which has no names, with its time."""
    before, clock, after = sentence.partition(age.clock)
    return timed_text(before + marked(clock, to_ms(age.since)) + after)
