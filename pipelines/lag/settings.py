"""The sections `lag` and `status` of the configuration, as values of the core, and the settings that a batch was written with."""

import json
from collections.abc import Mapping
from typing import Any

from coordinator_core.health import DEFAULT_SETTINGS, KeepRule, StatusSettings, keep_rules
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import Batch

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


def settings_text(settings: StatusSettings) -> str:
    """The settings as a JSON object, for `batches.status_settings`."""
    return json.dumps(settings._asdict())


def settings_of(batch: Batch) -> StatusSettings:
    """The settings of the job that wrote a batch.

    A setting that the batch does not have is the default, and a setting of a newer version is ignored.
    """
    stored = json.loads(batch.status_settings or "{}")
    return DEFAULT_SETTINGS._replace(**{name: stored[name] for name in StatusSettings._fields if name in stored})


def lag_keep(section: Mapping[str, Any]) -> tuple[KeepRule, ...]:
    """The rules of `lag.keep`.

    Raises:
        UsageError: the text is invalid.
    """
    try:
        return keep_rules(section["keep"])
    except ValueError as error:
        raise UsageError(str(error)) from error
