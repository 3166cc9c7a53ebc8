"""Sockets of the client library's connections, with five defects of kafka-python 3.0 corrected.

- The library drops the last response before a disconnect, which is how brokers reject a password.
- It leaves the sockets of failed connection attempts to the garbage collector.
- It leaves the sockets of failed TLS handshakes to the garbage collector.
- After a response that it cannot decode it stops reading from the connection without closing it.
- It reads in pieces of 4 KiB.
"""

import socket
import ssl
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaProtocolError
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

_RECEIVE_BYTES = 512 * 1024
HANDSHAKE_FAILED = "TLS handshake failed"
#: A broker that stops may disconnect during a handshake too; that is not an authentication failure.
HUNG_UP = "the broker closed the connection during the TLS handshake (is security_protocol that of the listener?)"
_LOST = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class _DirectSocket(KafkaNetSocket):
    """A socket without a proxy, closed if the connection attempt fails."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class _ReceivingMixin:
    """Returns received bytes before the end of the connection, and closes the connection on an invalid response."""

    async def _read_from_sock(self) -> None:
        try:
            await super()._read_from_sock()  # type: ignore[misc]  # of the transport base
        except Exception as error:
            self.abort(KafkaProtocolError(f"{type(error).__name__}: {error}"))  # type: ignore[attr-defined]  # the transport's

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, error = super()._sock_recv()  # type: ignore[misc]  # as above
        return (received, None) if received else (received, error)


class _PlainTransport(_ReceivingMixin, KafkaTCPTransport):
    """Reads in pieces of 512 KiB; the library reads 4 KiB and joins the pieces."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        try:
            received = self._sock.recv(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return b"", None
        except OSError as error:
            return b"", KafkaConnectionError(error)
        return (received, None) if received else (b"", KafkaConnectionError("socket disconnected"))


class _TlsTransport(_ReceivingMixin, KafkaSSLTransport):
    pass


class ConnectionManager(KafkaConnectionManager):
    """The library's connection manager with these transports."""

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        options = self.config["socket_options"]
        sock = await create_connection(self._net, node.host, node.port, options, proxy_url="direct://", timeout_at=timeout_at)
        try:
            transport = self._transport_over(sock, node.host)
        except BaseException:
            sock.close()
            raise
        try:
            await transport.handshake()
        except Exception as error:
            transport.abort(error)
            raise KafkaConnectionError(HUNG_UP if isinstance(error, _LOST) else f"{HANDSHAKE_FAILED}: {error}") from None
        except BaseException:
            transport.abort()
            raise
        return transport

    def _transport_over(self, sock: socket.socket, host: str) -> Any:
        if not self.ssl_enabled:
            return _PlainTransport(self._net, sock, host=host)
        tls = {name: value for name, value in self.config.items() if name.startswith("ssl_")}
        return _TlsTransport(self._net, sock, host=host, **tls)
