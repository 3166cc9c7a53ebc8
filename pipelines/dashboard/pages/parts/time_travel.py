"""The control of the time of a page: a step back, a step forward, and the slider over the history."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any, NamedTuple

from pipelines.dashboard.formatting.quantities import duration
from pipelines.dashboard.formatting.times import iso
from pipelines.dashboard.history.default_span import FIRST_BATCH, span_of_samples
from pipelines.dashboard.pages.parts.links import Links
from pipelines.dashboard.state.moment import Moment
from pipelines.runtime.errors import UsageError

#: A step is this share of the span of the page.
_STEPS_PER_SPAN = 12


class SliderMark(NamedTuple):
    """A line on the slider at a share of its width; `words` say what happened at the time `at`."""

    place: float
    at: datetime
    kind: str
    words: str


#: Marks of a slider that begins at a time.
Marks = Callable[[datetime], Sequence[SliderMark]]


def no_marks(_first: datetime) -> Sequence[SliderMark]:
    """The page has no events."""
    return ()


def time_control(moment: Moment, newest: Moment, links: Links, marks: Marks = no_marks) -> Mapping[str, Any]:
    """Links, times and marks of the control."""
    step = _step(moment, links)
    later = moment.at + step
    row = newest.query(FIRST_BATCH).to_pylist()[0]
    first: datetime = row["at"]
    sample_seconds = max(1, round((newest.at - first).total_seconds() / max(1, row["batches"] - 1)))
    # the first second at which there is a batch: before it there is no page
    first = _whole_seconds(first + timedelta(microseconds=999_999))
    drawn = marks(first)
    earlier = max(_whole_seconds(moment.at - step), first)
    return {
        "step": duration(step.total_seconds()),
        "earlier": links.here(as_of=iso(earlier)) if earlier < moment.at else None,
        "later": None if moment.at >= newest.at else links.here(as_of=iso(_whole_seconds(later)) if later < newest.at else None),
        "first": first,
        "newest": newest.at,
        "sample_seconds": sample_seconds,
        "marks": drawn,
        # one text per time, in the order of time, for the keyboard and the pointer
        "events": sorted((min(ceil(each.at.timestamp()), int(newest.at.timestamp())), each.words) for each in drawn),
    }


def _step(moment: Moment, links: Links) -> timedelta:
    try:
        span = span_of_samples(moment, links.query.get("span"))
    except UsageError:
        # the page itself reports it
        span = span_of_samples(moment, None)
    return timedelta(seconds=span.seconds / _STEPS_PER_SPAN)


def _whole_seconds(at: datetime) -> datetime:
    return at.replace(microsecond=0)
