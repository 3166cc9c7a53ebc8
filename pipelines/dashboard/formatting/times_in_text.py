"""Times within sentences, in elements of their own, so that a browser can print them in the zone of its reader.

A sentence knows where its times are (`coordinator_core.health.timed_text`). Any other text has none, whatever it looks like.
"""

from markupsafe import Markup, escape

from coordinator_core.health.timed_text import TimedText
from pipelines.dashboard.formatting.times import iso
from pipelines.runtime.timestamps import at_ms

_TIME = Markup('<time datetime="{}">{}</time>')


def timed(text: str) -> Markup:
    """The escaped text with a `<time>` around each of its times."""
    parts: list[Markup] = []
    end = 0
    for time in text.times if isinstance(text, TimedText) else ():
        parts += [escape(text[end : time.start]), _TIME.format(iso(at_ms(time.ms)), text[time.start : time.end])]
        end = time.end
    return Markup("").join([*parts, escape(text[end:])])
