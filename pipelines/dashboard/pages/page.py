"""What the modules of all pages share: the query of a request and the errors of a page."""

from collections.abc import Mapping, Sequence

from pipelines.errors import GrouplakeError, UsageError

#: Query parameters of a request, by name.
Query = Mapping[str, str]


class NoSuchPage(GrouplakeError):
    """The page of something that does not exist at its time."""


def choice(parameter: str, value: str | None, values: Sequence[str]) -> str:
    """One of the values, the first one without a value. Raises UsageError for another text."""
    if value is None or value == "":
        return values[0]
    if value not in values:
        raise UsageError(f"invalid {parameter} {value!r}: use one of {', '.join(values)}")
    return value
