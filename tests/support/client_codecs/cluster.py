"""Client side of the APIs of `cluster_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.cluster import (
    Broker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    ClientCodec,
    error_of,
    read_operations,
    require,
    require_one,
)


def _write_cluster_request(parts: Sequence[DescribeClusterRequest], version: int) -> Any:
    request = require_one(parts, version)
    return library.DescribeClusterRequest(
        include_cluster_authorized_operations=request.include_operations,
        endpoint_type=request.endpoint_type,
        include_fenced_brokers=False,
    )


def _read_cluster_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[DescribeClusterResponse]:
    return (
        DescribeClusterResponse(
            error=error_of(body.error_code),
            cluster_id=require(body.cluster_id, "cluster_id"),
            controller_id=body.controller_id,
            brokers=tuple(
                Broker(each.broker_id, require(each.host, "host"), each.port, each.rack)
                for each in require(body.brokers, "brokers")
            ),
            error_message=body.error_message,
            endpoint_type=body.endpoint_type if apis.DESCRIBE_CLUSTER.has_field(version, "endpoint_type") else 1,
            authorized_operations=read_operations(body.authorized_operations),
        ),
    )


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.DESCRIBE_CLUSTER: ClientCodec(
        library.DescribeClusterRequest, library.DescribeClusterResponse, _write_cluster_request, _read_cluster_response
    ),
}
