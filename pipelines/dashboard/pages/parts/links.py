"""Links between pages. They keep the time of the page, so that a walk through a past moment remains there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from pipelines.dashboard.path_names import encode_name

#: Query parameters that all pages have.
_KEPT = ("as_of", "span")


@dataclass(frozen=True)
class Links:
    """Links from a page: `path` and `query` are its own."""

    cluster: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)

    def to(self, *names: str, **query: object) -> str:
        """The page of the cluster under these path segments, such as `to("groups", "billing", tab="members")`."""
        path = "/".join(encode_name(name) for name in ("c", self.cluster, *names))
        return _url(f"/{path}" if names else f"/{path}/", {**self._time(), **query})

    def cluster_page(self, cluster: str) -> str:
        """The overview of another cluster, at the same time."""
        return _url(f"/c/{encode_name(cluster)}/", {name: value for name, value in self._time().items() if name != "as_of"})

    def here(self, **query: object) -> str:
        """This page with other parameters; None removes one. Relative, because a name in the path may be long."""
        return _url("", {**self.query, **query}) or self.path

    def file(self, suffix: str) -> str:
        """The JSON or CSV of this page."""
        path = self.path.removesuffix("/")
        return _url(f"{path}/index{suffix}" if self.path.endswith("/") else f"{path}{suffix}", self.query)

    def _time(self) -> dict[str, str]:
        return {name: self.query[name] for name in _KEPT if name in self.query}


def _url(path: str, query: Mapping[str, object]) -> str:
    text = urlencode({name: str(value) for name, value in query.items() if value is not None and value != ""})
    return f"{path}?{text}" if text else path
