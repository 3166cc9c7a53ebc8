"""The resources of the export: this process, alone and with each of its clusters."""

import socket
from collections.abc import Mapping
from uuid import UUID, uuid5

from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from pipelines.runtime.version import build_version

#: Namespace of `service.instance.id` for an id that follows from the service, by OpenTelemetry's semantic conventions.
_NAMESPACE = UUID("4d63009a-8d0f-11ee-aad7-4c796ed8e320")
#: The name of the cluster, as the label of the same name.
_CLUSTER = "cluster_name"


def resources(roots: Mapping[str, str], role: str) -> dict[str | None, Resource]:
    """The resource of each cluster by name, and under None that of the process.

    The id of the instance follows from machine, role and tables, so a restart continues the series. `OTEL_RESOURCE_ATTRIBUTES`
    and `OTEL_SERVICE_NAME` come first.
    """
    instance = uuid5(_NAMESPACE, "\n".join((socket.gethostname(), role, *sorted(roots.values()))))
    own = {"service.name": "grouplake", "service.version": build_version(), "service.instance.id": str(instance)}
    given = OTELResourceDetector().detect().attributes
    process = Resource.create({name: value for name, value in own.items() if name not in given})
    clusters: dict[str | None, Resource] = {name: process.merge(Resource({_CLUSTER: name})) for name in roots}
    return {None: process, **clusters}
