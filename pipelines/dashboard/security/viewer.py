"""The authenticated client of a request, and the groups that it may see."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection


@dataclass(frozen=True)
class Viewer:
    """A client of the server. `groups` matches the whole names of the groups that it may see; None: all groups."""

    name: str
    groups: re.Pattern[str] | None = None

    @property
    def is_limited(self) -> bool:
        """True if the viewer may not see every group."""
        return self.groups is not None

    def may_see(self, group_id: str) -> bool:
        """True if the viewer may see the group. A group that it may not see is answered like an unknown one."""
        return self.groups is None or self.groups.fullmatch(group_id) is not None

    def visible(self, group_ids: Iterable[str]) -> list[str]:
        """The groups that the viewer may see, in the given order."""
        return [group_id for group_id in group_ids if self.may_see(group_id)]


#: The viewer of a server without authentication, which only clients of the same machine reach.
LOCAL_VIEWER = Viewer("local")


def viewer_of(request: "HTTPConnection") -> Viewer:
    """The viewer of a request, as the authentication set it."""
    viewer: Viewer = request.state.viewer
    return viewer
