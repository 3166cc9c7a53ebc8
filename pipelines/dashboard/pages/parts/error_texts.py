"""Messages of errors as a viewer may read them: those of the tables may name a folder, a bucket or a host."""

from pipelines.dashboard.pages.parts.page import NoSuchPage
from pipelines.dashboard.security.viewer import Viewer
from pipelines.dashboard.state.errors import InvalidRequest, NotLoaded, UnknownCluster
from pipelines.runtime.errors import RemovedState, UsageError

#: Their messages have the names and values of the request, and names of clusters.
_ABOUT_THE_REQUEST = (InvalidRequest, NoSuchPage, UnknownCluster)
#: Message for a limited role by type, in the order in which the types are compared.
_FOR_LIMITED_ROLES: tuple[tuple[type[Exception], str], ...] = (
    (NotLoaded, "the cluster is not loaded now: try again in a few seconds, or see the log of the server"),
    (RemovedState, "the tables of that time were removed: choose a later time"),
    (UsageError, "the tables have no batch as of that time, or it cannot be read"),
)
#: Message of any other error, and of the tables of a cluster that cannot be loaded.
IN_THE_LOG = "the tables cannot be read: see the log of the server"


def error_text(error: Exception, viewer: Viewer) -> str:
    """The message of an error of a page. A role that is limited to some groups gets no name of the server's own."""
    if not viewer.is_limited or isinstance(error, _ABOUT_THE_REQUEST):
        return str(error)
    return next((words for kind, words in _FOR_LIMITED_ROLES if isinstance(error, kind)), IN_THE_LOG)
