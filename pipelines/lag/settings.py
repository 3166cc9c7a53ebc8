"""The sections `lag` and `status` of the configuration, as values of the core."""

from collections.abc import Mapping
from typing import Any

from coordinator_core.health import KeepRule, StatusSettings, keep_rules
from pipelines.runtime.errors import UsageError

_SHARES = ("minimum_complete", "skew_share", "retention_share", "falls_behind_share")
_AT_LEAST_1 = (
    *("window_commits", "few_commits", "storm_rebalances", "falls_behind_burst", "falls_behind_ms"),
    *("hot_partitions", "hot_ratio", "hot_ms"),
)


def status_settings(section: Mapping[str, Any]) -> StatusSettings:
    """The limits of the rules.

    Raises:
        UsageError: a value is out of range.
    """
    for name in _SHARES:
        if not 0 <= section[name] <= 1:
            raise UsageError(f"status.{name} is {section[name]:g}: must be between 0 and 1")
    for name in _AT_LEAST_1:
        if section[name] < 1:
            raise UsageError(f"status.{name} is {section[name]}: must be at least 1")
    return StatusSettings(**section)


def lag_keep(section: Mapping[str, Any]) -> tuple[KeepRule, ...]:
    """The rules of `lag.keep`.

    Raises:
        UsageError: the text is invalid.
    """
    try:
        return keep_rules(section["keep"])
    except ValueError as error:
        raise UsageError(str(error)) from error
