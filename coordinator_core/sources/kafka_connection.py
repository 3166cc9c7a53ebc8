"""Requests to the brokers of one cluster, over the connections of kafka-python (addresses, TLS, SASL, versions)."""

import atexit
import contextlib
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import kafka.errors
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from coordinator_core.log.errors import AuthenticationFailed, LogError, LogMisconfigured, LogUnreachable, RequestRejected
from coordinator_core.sources.kafka_options import library_options, without_secrets
from coordinator_core.sources.kafka_transport import HANDSHAKE_FAILED, ConnectionManager

#: Builds a request for the API versions of a broker (`BrokerVersionData`).
RequestFor = Callable[[Any], Any]
#: Called with the number of a round of requests and its responses by node id.
Received = Callable[[int, dict[int, Any]], object]

_CONNECT_TIMEOUT_MS = 10_000
#: The library allocates a response by its length field. Room for the largest batch and the other partitions.
_LARGEST_RESPONSE_BYTES = 192 * 1024 * 1024
_THROTTLE_STEP_SECONDS = 0.05
_WITH_AUTO_CREATION_FLAG = 4

_AUTHENTICATION = (kafka.errors.SaslAuthenticationFailedError, kafka.errors.IllegalSaslStateError)


class KafkaConnection:
    """Connections to a cluster, opened on first use. For one thread at a time.

    Every method raises LogUnreachable if a broker does not answer (a retry may help), AuthenticationFailed, LogMisconfigured
    (TLS files), or RequestRejected (no common version of a request).
    """

    def __init__(self, servers: Sequence[str], options: Mapping[str, str]) -> None:
        self._options = dict(options)
        configuration = {
            "bootstrap_servers": list(servers),
            "client_id": "grouplake",
            "receive_message_max_bytes": _LARGEST_RESPONSE_BYTES,
            "reconnect_backoff_max_ms": 1000,
            "socket_connection_setup_timeout_ms": _CONNECT_TIMEOUT_MS,
        } | library_options(options)
        self._servers = ",".join(servers)
        self._net = NetworkSelector(client_id=configuration["client_id"], slow_task_threshold_secs=0)
        self._manager = ConnectionManager(self._net, **configuration)
        self._contacted = False
        self._release: tuple[int, ...] | None = None
        self._last_failures: dict[int | str, LogUnreachable] = {}

    @property
    def contacted(self) -> bool:
        """True once any broker has answered: until then the address may be wrong."""
        return self._contacted

    @property
    def release(self) -> str | None:
        """Newest release whose requests the broker accepts that answered the last request for metadata, such as `4.1`."""
        return None if self._release is None else ".".join(map(str, self._release))

    def metadata(self, topics: Sequence[str] | None) -> Any:
        """Request metadata of topics (None: of all topics) from any broker, and keep the brokers in the response."""
        return self._run(self._metadata, topics)

    def send_all(self, requests: Mapping[int, RequestFor]) -> dict[int, Any]:
        """Send requests to several brokers in parallel. Returns node id → response, or the LogError of that broker."""
        answers: dict[int, Any] = self._run(self._send_all, requests)
        return answers

    def send_in_order(self, rounds: Sequence[Mapping[int, RequestFor]], received: Received) -> None:
        """Send several rounds of requests, each like `send_all`, without waiting for the responses of the round before.

        `received` is called with the number and the responses of each round, in order. Brokers work on the next round meanwhile.
        """
        self._run(self._send_in_order, rounds, received)

    def send_any(self, request: RequestFor) -> Any:
        """Send a request that any broker can answer. Returns the response, or the LogError of that broker."""
        return self._run(self._send_any, request)

    def close(self) -> None:
        """Close every connection."""
        with contextlib.suppress(Exception):
            self._manager.close()
            self._net.drain()
        with contextlib.suppress(Exception):
            self._net.close()

    def _run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self._net.run(call, *arguments)
        except LogError:
            raise
        except Exception as error:
            raise self._translated(error) from None

    async def _send_all(self, requests: Mapping[int, RequestFor]) -> dict[int, Any]:
        return await _responses(self._sent(requests))

    async def _send_in_order(self, rounds: Sequence[Mapping[int, RequestFor]], received: Received) -> None:
        sent = [self._sent(requests) for requests in rounds]
        for number, futures in enumerate(sent):
            received(number, await _responses(futures))

    def _sent(self, requests: Mapping[int, RequestFor]) -> dict[int, Any]:
        """Node id → the future of its response."""
        return {node: self._manager.call_soon(self._answer, node, request) for node, request in requests.items()}

    async def _answer(self, node: int | str, request: RequestFor) -> Any:
        try:
            return await self._send(node, request)
        except kafka.errors.NodeNotReadyError as error:
            # The library pauses between attempts; the error before the pause is more useful.
            return self._last_failures.get(node) or self._translated(error)
        except Exception as error:
            failure = error if isinstance(error, LogError) else self._translated(error)
            if isinstance(failure, LogUnreachable):
                self._last_failures[node] = failure
            return failure

    async def _send(self, node: int | str, request_for: RequestFor) -> Any:
        # Only this class refreshes metadata, not the library in the background.
        connection = self._manager.get_connection(node, refresh_metadata_on_err=False)
        await self._manager.wait_for(connection.init_future, _CONNECT_TIMEOUT_MS)
        while "throttle" in connection.paused:
            await self._net.sleep(_THROTTLE_STEP_SECONDS)
        response = await connection.send_request(request_for(connection.broker_version_data))
        self._contacted = True
        return response

    async def _send_any(self, request: RequestFor) -> Any:
        """Try the brokers in turn until one answers. Raises LogUnreachable if none does."""
        cluster = self._manager.cluster
        failures = []
        for broker in (*cluster.brokers(), *cluster.bootstrap_brokers()):
            answer = await self._answer(broker.node_id, request)
            if not isinstance(answer, LogUnreachable):
                return answer
            failures.append(f"{broker.host}:{broker.port}: {answer}")
        raise LogUnreachable(f"no broker answers at {self._servers} ({'; '.join(dict.fromkeys(failures))})")

    async def _metadata(self, topics: Sequence[str] | None) -> Any:
        def request(versions: Any) -> Any:
            self._release = versions.broker_version
            return metadata_request(versions, topics)

        answer = await self._send_any(request)
        if isinstance(answer, LogError):
            raise answer
        # the library needs the brokers only; it would copy every partition
        topics, answer.topics = answer.topics, []
        self._manager.cluster.update_metadata(answer)
        answer.topics = topics
        return answer

    def _translated(self, error: Exception) -> LogError:
        text = without_secrets(str(error) or type(error).__name__, self._options)
        if isinstance(error, kafka.errors.UnsupportedSaslMechanismError):
            return AuthenticationFailed(
                f"authentication failed: the broker does not support the SASL mechanism {self._options['sasl_mechanism']}"
            )
        if isinstance(error, _AUTHENTICATION):
            return AuthenticationFailed(f"authentication failed: {text}")
        if isinstance(error, kafka.errors.KafkaConnectionError) and HANDSHAKE_FAILED in text:
            return AuthenticationFailed(f"{text}; check ssl_cafile, ssl_certfile and security_protocol")
        if isinstance(error, kafka.errors.IncompatibleBrokerVersion):
            return RequestRejected(f"the broker is too old or too new: {text}")
        if isinstance(error, kafka.errors.KafkaProtocolError):
            return LogUnreachable(f"invalid response: {text} (is security_protocol that of the listener?)")
        if isinstance(error, (OSError, ssl.SSLError)) and not isinstance(error, kafka.errors.KafkaError):
            return LogMisconfigured(f"TLS cannot be set up: {text}")
        return LogUnreachable(_PLAIN_WORDS.get(text, text))


async def _responses(futures: Mapping[int, Any]) -> dict[int, Any]:
    return {node: await future for node, future in futures.items()}


#: Error text of the library for a closed connection → its meaning.
_PLAIN_WORDS = {
    "111 ECONNREFUSED": "connection refused",
    "KafkaConnectionError: 111 ECONNREFUSED": "connection refused",
    "Cancelled": "the connection was closed",
    "KafkaConnectionError: socket disconnected": "the broker closed the connection (is security_protocol that of the listener?)",
    "KafkaConnectionError: DNS Resolution failure": "the host name does not resolve",
}


def metadata_request(versions: Any, names: Sequence[str] | None) -> Any:
    """A Metadata request for topics (None: all topics) that creates none."""
    if names is None or versions.api_version(MetadataRequest) < _WITH_AUTO_CREATION_FLAG:
        # Old brokers create a missing topic named in the request, but not in a request for all topics.
        topics = MetadataRequest.ALL_TOPICS
    else:
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


_PoolKey = tuple[int, tuple[str, ...], tuple[tuple[str, str], ...]]
_idle: dict[_PoolKey, list[KafkaConnection]] = {}
_idle_lock = threading.Lock()
_IDLE_PER_CLUSTER = 4


def _pool_key(servers: Sequence[str], options: Mapping[str, str]) -> _PoolKey:
    # A forked process must not use its parent's sockets.
    return os.getpid(), tuple(servers), tuple(sorted(options.items()))


def borrow_connection(servers: Sequence[str], options: Mapping[str, str]) -> KafkaConnection:
    """Return an exclusive connection: an idle one to the same cluster with the same options, or a new one."""
    with _idle_lock:
        idle = _idle.get(_pool_key(servers, options))
        if idle:
            return idle.pop()
    return KafkaConnection(servers, options)


def give_back(servers: Sequence[str], options: Mapping[str, str], connection: KafkaConnection) -> None:
    """Keep a borrowed connection for the next caller, so that a micro-batch starts without connecting."""
    with _idle_lock:
        idle = _idle.setdefault(_pool_key(servers, options), [])
        if connection.contacted and len(idle) < _IDLE_PER_CLUSTER:
            idle.append(connection)
            return
    connection.close()


@contextlib.contextmanager
def borrowed_connection(servers: Sequence[str], options: Mapping[str, str]) -> Iterator[KafkaConnection]:
    """Borrow a connection for a `with` block."""
    connection = borrow_connection(servers, options)
    try:
        yield connection
    finally:
        give_back(servers, options, connection)


def close_idle_connections() -> None:
    """Close all idle connections."""
    with _idle_lock:
        connections = [each for (process, *_), idle in _idle.items() if process == os.getpid() for each in idle]
        _idle.clear()
    for connection in connections:
        connection.close()


atexit.register(close_idle_connections)
