"""Times within sentences, marked so that a browser can print them in the zone of its reader."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jinja2 import pass_context
from markupsafe import Markup, escape

from pipelines.dashboard.formatting.times import iso

#: `10:50 UTC`, `3 Mar, 23:59 UTC`, `12:00:05`, `2026-03-03 17:35`; not a part of a name or an address such as `fe80::10:50`.
_TIME = re.compile(
    r"(?<![\w:.-])"
    r"(?:(?P<day>\d{1,2} [A-Z][a-z]{2})(?: (?P<year>\d{4}))?,? |(?P<date>\d{4}-\d\d-\d\d) )?"
    r"(?P<time>[0-2]\d:[0-5]\d(?::[0-5]\d)?)(?: UTC)?"
    r"(?![\w-]|[:.]\w)"
)


@pass_context
def timed(context: Mapping[str, Any], text: str) -> Markup:
    """The escaped text with a `<time>` around each time. Those without a date are of the day of the sample of the page."""
    moment = context.get("moment")
    return marked_times(text, (moment.sampled_at or moment.at) if moment else None)


def marked_times(text: str, now: datetime | None) -> Markup:
    """The same; without `now` no time is marked."""
    parts: list[Markup] = []
    end = 0
    for found in _TIME.finditer(text):
        at = None if now is None else _time_of(found.groupdict(), now)
        if at is not None:
            parts += [escape(text[end : found.start()]), Markup('<time datetime="{}">{}</time>').format(iso(at), found[0])]
            end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _time_of(found: Mapping[str, str | None], now: datetime) -> datetime | None:
    """The time of a match; None if there is no such day or hour."""
    date = found["date"] or (f"{found['year'] or now.year} {found['day']}" if found["day"] else f"{now:%Y-%m-%d}")
    form = f"{'%Y-%m-%d' if date[4] == '-' else '%Y %d %b'} %H:%M{':%S' if (found['time'] or '').count(':') > 1 else ''}"
    try:
        return datetime.strptime(f"{date} {found['time']}", form).replace(tzinfo=UTC)
    except ValueError:
        return None
