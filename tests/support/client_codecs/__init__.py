"""Client side of all APIs, for tests that request as clients and brokers do: those of members are in the product."""

from collections.abc import Mapping
from functools import partial

from client_codecs import cluster, commit, configs, groups, log, offsets, partitions, produce, topics, transactions
from coordinator_core.protocol.api import AnyApi
from coordinator_core.wire import client_side
from coordinator_core.wire.api_codec import ClientCodec
from coordinator_core.wire.client_codecs import CLIENT_CODECS

ALL_CODECS: Mapping[AnyApi, ClientCodec] = {
    **CLIENT_CODECS,
    **cluster.CODECS,
    **commit.CODECS,
    **configs.CODECS,
    **groups.CODECS,
    **log.CODECS,
    **offsets.CODECS,
    **partitions.CODECS,
    **produce.CODECS,
    **topics.CODECS,
    **transactions.CODECS,
}

write_request = partial(client_side.write_request, codecs=ALL_CODECS)
read_response = partial(client_side.read_response, codecs=ALL_CODECS)
