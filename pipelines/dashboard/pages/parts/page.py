"""The specification of a page, the query of a request, and the errors of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from pipelines.dashboard.pages.parts.time_travel import SliderMark
from pipelines.dashboard.state.errors import InvalidRequest
from pipelines.dashboard.state.moment import Moment
from pipelines.runtime.errors import GrouplakeError

#: Query parameters of a request, by name.
Query = Mapping[str, str]
#: Names in the path of a request, such as `group`.
Names = Mapping[str, str]
#: All that a page shows, without markup: its JSON.
Model = dict[str, Any]


class NoSuchPage(GrouplakeError):
    """The page of something that does not exist at its time."""


@dataclass(frozen=True)
class Page:
    """A page of a cluster.

    - `name`: of its entry in the navigation.
    - `path`: below the path of the cluster, such as `groups/{group:name}`.
    - `model`: what the page shows. Raises NoSuchPage, and UsageError for an invalid query.
    - `view`: what only the template needs, such as the geometry of charts, made from the model.
    - `csv`: the rows of the page's list, without paging.
    - `marks`: events on the slider of time, from the model, the newest moment and the start of the slider.
    - `is_of_batch`: the page is a function of the batch. False for tables that change without one.
    """

    name: str
    path: str
    template: str
    summary: str
    model: Callable[[Moment, Names, Query], Model]
    title: Callable[[Model], str]
    view: Callable[[Model, Moment], Mapping[str, Any]] | None = None
    csv: Callable[[Moment, Names, Query], pa.Table] | None = None
    marks: Callable[[Model, Moment, datetime], Sequence[SliderMark]] | None = None
    is_of_batch: bool = True


def choice(parameter: str, value: str | None, values: Sequence[str]) -> str:
    """One of the values, the first one without a value. Raises InvalidRequest for another text."""
    if value is None or value == "":
        return values[0]
    if value not in values:
        raise InvalidRequest(f"invalid {parameter} {value!r}: use one of {', '.join(values)}")
    return value
