"""Routes of Burrow's HTTP API. It only reads: Burrow's DELETE is refused, and its configuration is not here."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from pipelines.dashboard.burrow import responses
from pipelines.dashboard.burrow.commit_windows import commit_windows
from pipelines.dashboard.responses import READ, error_response, json_response
from pipelines.dashboard.security.viewer import viewer_of
from pipelines.dashboard.security.visible_snapshots import VisibleSnapshots
from pipelines.metrics.site import Site
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot

_CLUSTER = "/v3/kafka/{cluster:name}"
_GROUP = f"{_CLUSTER}/consumer/{{group:name}}"
#: Burrow's path of the empty group has an empty segment: `/consumer//lag`.
_ANY_GROUP = f"{_CLUSTER}/consumer/{{group:name_or_empty}}"
_CLUSTER_NOT_FOUND = "cluster not found"


class BurrowApi:
    """The routes of `/v3/kafka` and `/burrow/admin`. Names in paths are encoded as in those of pages, or percent-encoded."""

    def __init__(self, site: Site, interval_seconds: int) -> None:
        self._site = site
        self._interval_seconds = interval_seconds
        self._visible = VisibleSnapshots()

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["burrow"])
        for path, endpoint in (
            ("/burrow/admin", self.admin),
            ("/burrow/admin/ready", self.ready),
            ("/v3/kafka", self.clusters),
            (_CLUSTER, self.cluster),
            (f"{_CLUSTER}/topic", self.topics),
            (f"{_CLUSTER}/topic/{{topic:name}}", self.topic),
            (f"{_CLUSTER}/topic/{{topic:name}}/consumers", self.topic_consumers),
            (f"{_CLUSTER}/consumer", self.consumers),
            (_GROUP, self.consumer),
            (f"{_ANY_GROUP}/status", self.consumer_status),
            (f"{_ANY_GROUP}/lag", self.consumer_lag),
        ):
            router.add_api_route(path, endpoint, methods=READ)
        return router

    async def admin(self) -> Response:
        """That the server runs."""
        return Response("GOOD", media_type="text/plain")

    async def ready(self) -> Response:
        """Whether every cluster is loaded."""
        is_ready = self._site.is_ready
        return Response("READY" if is_ready else "STARTING", 200 if is_ready else 503, media_type="text/plain")

    async def clusters(self, request: Request) -> Response:
        """Names of the clusters."""
        return json_response(request, "cluster list returned", clusters=list(self._site.roots))

    async def cluster(self, request: Request, cluster: str) -> Response:
        """The counterpart of Burrow's configuration of a cluster."""
        message, missing = "cluster module detail returned", "cluster module not found"
        module = partial(responses.cluster_module, interval_seconds=self._interval_seconds)
        return self._of_cluster(request, cluster, message, "module", module, missing=missing)

    async def topics(self, request: Request, cluster: str) -> Response:
        """Names of the topics."""
        return self._of_cluster(request, cluster, "topic list returned", "topics", responses.topics)

    async def topic(self, request: Request, cluster: str, topic: str) -> Response:
        """Log ends of a topic."""
        message, missing = "topic offsets returned", "cluster or topic not found"
        return self._of_cluster(
            request, cluster, message, "offsets", responses.topic_offsets, topic, missing=missing, of_now=True
        )

    async def topic_consumers(self, request: Request, cluster: str, topic: str) -> Response:
        """Groups of a topic."""
        message = "consumers of topic returned"
        return self._of_cluster(request, cluster, message, "consumers", responses.consumers_of_topic, topic)

    async def consumers(self, request: Request, cluster: str) -> Response:
        """Names of the groups."""
        return self._of_cluster(request, cluster, "consumer list returned", "consumers", responses.consumers)

    def consumer(self, request: Request, cluster: str, group: str) -> Response:
        """The last commits of a group. It reads files, so it runs in a thread of the pool."""

        def topics(snapshot: MemorySnapshot, name: str) -> Any:
            history = commit_windows(self._site.roots[cluster], snapshot, name)
            return responses.consumer_topics(snapshot, name, history)

        missing = "cluster or consumer not found"
        message = "consumer detail returned"
        return self._of_cluster(request, cluster, message, "topics", topics, group, missing=missing, of_now=True)

    async def consumer_status(self, request: Request, cluster: str, group: str) -> Response:
        """Status of a group, with the partitions that are not OK."""
        return self._status(request, cluster, group, is_complete=False)

    async def consumer_lag(self, request: Request, cluster: str, group: str) -> Response:
        """Status of a group, with all partitions."""
        return self._status(request, cluster, group, is_complete=True)

    def _snapshot(self, request: Request, cluster: str) -> MemorySnapshot | None:
        """The snapshot of a cluster, with the groups that the viewer may see."""
        snapshot = self._site.snapshot(cluster)
        return None if snapshot is None else self._visible.snapshot(snapshot, viewer_of(request))

    def _old(self, cluster: str) -> str | None:
        """Why offsets and statuses of the present are unknown; None if they are known."""
        age = self._site.age(cluster)
        return None if age is None else age.headline

    def _status(self, request: Request, cluster: str, group: str, *, is_complete: bool) -> Response:
        snapshot = self._snapshot(request, cluster)
        old = self._old(cluster)
        if snapshot is not None and old is not None:
            return error_response(request, 503, old)
        if snapshot is None:
            body = responses.not_found(cluster, group)
        else:
            body = responses.consumer_status(snapshot, cluster, group, is_complete=is_complete)
        code = 404 if body["status"] == responses.NOT_FOUND else 200
        return json_response(request, "consumer status returned", code, status=body)

    def _of_cluster(
        self,
        request: Request,
        cluster: str,
        message: str,
        key: str,
        make: Callable[..., Any],
        *names: str,
        missing: str = _CLUSTER_NOT_FOUND,
        of_now: bool = False,
    ) -> Response:
        """The result of `make` for the snapshot of the cluster and the other names in the path; None is an unknown name.

        `of_now`: the body has offsets of the present, which are unknown once the data is old.
        """
        snapshot = self._snapshot(request, cluster)
        old = self._old(cluster) if of_now else None
        if snapshot is not None and old is not None:
            return error_response(request, 503, old)
        value = None if snapshot is None else make(snapshot, *names)
        return error_response(request, 404, missing) if value is None else json_response(request, message, **{key: value})
