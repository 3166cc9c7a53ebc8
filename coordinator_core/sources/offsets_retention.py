"""`offsets.retention.minutes` of the brokers of a cluster: after this time the coordinators remove committed offsets.

It is a setting of brokers alone: up to 4.3 no setting of a group (resource type GROUP) changes when its offsets expire.
"""

from collections.abc import Mapping

from coordinator_core.log.errors import LogError
from coordinator_core.sources.described_configs import each_broker_configs
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address

OFFSETS_RETENTION = "offsets.retention.minutes"


def offsets_retention_minutes(address: str, options: Mapping[str, str] | None) -> dict[int, int] | str:
    """Minutes by node id, of the brokers of a `kafka://` address that report them; the reason if none does.

    The user needs the ACL DescribeConfigs on the cluster. Brokers before 0.11 cannot be asked.
    """
    try:
        with borrowed_connection(parse_address(address).servers, dict(options or {})) as connection:
            nodes = [broker.node_id for broker in connection.metadata(()).brokers or ()]
            found = each_broker_configs(connection, nodes, (OFFSETS_RETENTION,))
    except LogError as error:
        return str(error)
    described = {node: each for node, each in found.items() if isinstance(each, dict)}
    minutes = {node: int(each[OFFSETS_RETENTION]) for node, each in described.items() if OFFSETS_RETENTION in each}
    if minutes:
        return minutes
    reasons = sorted({str(each) for node, each in found.items() if node not in described})
    return "; ".join(reasons) or f"the brokers do not report {OFFSETS_RETENTION}"
