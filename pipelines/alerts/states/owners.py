"""Owners of groups, by regular expressions on names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.alerts.states.labels import Labels


@dataclass(frozen=True)
class OwnerTeam:
    """A team that owns the groups whose whole name matches."""

    groups: re.Pattern[str]
    labels: Labels
    receivers: tuple[str, ...] = ()

    @property
    def team(self) -> str | None:
        """The label `team`."""
        return dict(self.labels).get("team")


def owner_of(group: str | None, owners: Iterable[OwnerTeam]) -> OwnerTeam | None:
    """The first owner whose expression matches the name of the group."""
    if group is None:
        return None
    return next((owner for owner in owners if owner.groups.fullmatch(group)), None)
