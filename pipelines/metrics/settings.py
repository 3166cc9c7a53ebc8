"""Settings of `/metrics`, from the section `[metrics]` of the configuration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.metrics.metric import Family, Level
from pipelines.runtime.errors import UsageError

#: Granularity → levels with series about groups and topics.
GRANULARITIES: dict[str, tuple[Level, ...]] = {
    "group": (Level.GROUP,),
    "topic": (Level.GROUP, Level.TOPIC, Level.GROUP_TOPIC),
    "partition": (
        *(Level.GROUP, Level.TOPIC, Level.GROUP_TOPIC),
        *(Level.TOPIC_PARTITION, Level.GROUP_PARTITION, Level.SHARE_PARTITION),
    ),
}
#: Values of `metrics.families`; the family of Grouplake's own series is always there.
FAMILIES = tuple(family.value for family in Family if family is not Family.OWN)


#: Value of `metrics.stale_seconds`: the limit follows from the interval of the job.
OF_INTERVAL = -1


@dataclass(frozen=True)
class MetricsSettings:
    """Which series are exposed. `stale_seconds` 0: series of groups are never left out; OF_INTERVAL: by that of the job."""

    families: frozenset[Family]
    granularity: str
    #: Groups with series per partition.
    partition_groups: re.Pattern[str]
    max_series: int
    member_labels: bool
    member_labels_max_series: int
    stale_seconds: int

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels with series about groups and topics."""
        return GRANULARITIES[self.granularity]


def metrics_settings(section: Mapping[str, Any]) -> MetricsSettings:
    """Check the section. Raises UsageError for an invalid value."""
    for name in section["families"]:
        if name not in FAMILIES:
            raise UsageError(f"metrics.families has {name!r}: use names of {', '.join(FAMILIES)}")
    if section["granularity"] not in GRANULARITIES:
        raise UsageError(f"metrics.granularity is {section['granularity']!r}: must be one of {', '.join(GRANULARITIES)}")
    try:
        partition_groups = re.compile(section["partition_groups"])
    except re.error as error:
        raise UsageError(
            f"metrics.partition_groups is {section['partition_groups']!r}: not a regular expression ({error})"
        ) from error
    return MetricsSettings(
        families=frozenset({Family.OWN, *map(Family, section["families"])}),
        granularity=section["granularity"],
        partition_groups=partition_groups,
        max_series=section["max_series"],
        member_labels=section["member_labels"],
        member_labels_max_series=section["member_labels_max_series"],
        stale_seconds=section["stale_seconds"],
    )
