"""The teams that own groups, from the owners in a file of alert rules."""

from collections.abc import Sequence
from functools import lru_cache

from pipelines.alerts.states import OwnerTeam, owner_of

#: Names of groups whose team is kept: matching 10,000 names takes 10 ms and more.
_KEPT_NAMES = 100_000


class Teams:
    """Teams by the names of their groups."""

    def __init__(self, owners: Sequence[OwnerTeam] = ()) -> None:
        @lru_cache(_KEPT_NAMES)
        def team(group: str) -> str | None:
            owner = owner_of(group, owners)
            return None if owner is None else owner.team

        self.of = team
        #: All teams, in order.
        self.names = sorted({owner.team for owner in owners if owner.team})
