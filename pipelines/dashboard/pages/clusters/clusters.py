"""The first page: all clusters with their groups by status. It shows the newest batch of each, not one time."""

from typing import Any

from pipelines.dashboard.pages.groups.group_filter import status_counts
from pipelines.dashboard.pages.parts.error_texts import error_text
from pipelines.dashboard.pages.parts.links import Links
from pipelines.dashboard.security.viewer import Viewer
from pipelines.dashboard.state.errors import NotLoaded
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.dashboard.state.visible_state import visible_moment


def clusters_page(moments: MomentStore, viewer: Viewer) -> dict[str, Any]:
    """The model of the page, with the groups that the viewer may see."""
    return {"clusters": [_cluster(moments, name, viewer) for name in moments.clusters()]}


def _cluster(moments: MomentStore, name: str, viewer: Viewer) -> dict[str, Any]:
    found: dict[str, Any] = {"cluster": name, "url": Links(name, "/").to(), "error": None, "batch_id": None}
    try:
        moment = visible_moment(moments.moment(name), viewer)
    except NotLoaded as error:
        return {**found, "error": error_text(error, viewer)}
    summaries = moment.summaries()
    return {
        **found,
        "batch_id": moment.batch.batch_id,
        "finished_at": moment.batch.finished_at,
        "sampled_at": moment.sampled_at,
        "age": None if moment.age is None else moment.age.as_json(),
        "groups": summaries.num_rows,
        "statuses": status_counts(summaries),
    }
