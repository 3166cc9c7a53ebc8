"""The moment that a call is about: cluster, time, viewer, and what each answer says about its data."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from pipelines.dashboard.security.viewer import Viewer
from pipelines.dashboard.state.errors import InvalidRequest
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.dashboard.state.visible_state import visible_moment

_DERIVED = "the tables of that time were removed, and the state follows from the histories, which have less"


class AskedMoment(NamedTuple):
    """A moment with the groups that the viewer may see. `now` is null if a time was asked for."""

    moment: Moment
    now: datetime | None

    def header(self) -> dict[str, Any]:
        """The fields of `AgentAnswer`."""
        moment = self.moment
        old = moment.age.headline if moment.age is not None else None
        return {
            "cluster": moment.cluster,
            "at": moment.at,
            "batch_id": moment.batch.batch_id,
            "data_until": moment.batch.finished_at,
            "sampled_at": moment.sampled_at,
            "data_age_seconds": max(0.0, ((self.now or moment.at) - moment.batch.finished_at).total_seconds()),
            "is_newest": moment.is_newest,
            "warning": old or (_DERIVED if moment.is_derived else None),
        }


def position_of(moments: MomentStore, viewer: Viewer, cluster: str | None, at: str | None) -> AskedMoment:
    """The position of a call; the only cluster without a name.

    Raises:
        InvalidRequest: several clusters and no name, or not a time or batch.
        UnknownCluster, NotLoaded, UsageError, RemovedState: as `MomentStore.moment`.
    """
    names = moments.clusters()
    if cluster is None and len(names) > 1:
        raise InvalidRequest(f"name a cluster: there are {', '.join(names)}")
    moment = moments.moment(names[0] if cluster is None else cluster, at or None)
    return AskedMoment(visible_moment(moment, viewer), None if at else datetime.now(UTC))
