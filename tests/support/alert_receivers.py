"""Real receivers of notifications on loopback: an HTTP server, an SMTP server, a program, a clock, and tables to watch."""

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from patience import PATIENCE_SECONDS

from pipelines.alerts.alert_store import AlertStore
from pipelines.alerts.evaluation_log import EvaluationLog
from pipelines.alerts.evaluator import AlertEvaluator
from pipelines.alerts.rules_file import load_rules
from pipelines.alerts.states import Alert
from pipelines.examples.private.kafka.ports import PortReservation


@dataclass
class Webhooks:
    """An HTTP server that stores requests. It answers with `status`."""

    url: str = ""
    status: int = 200
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    #: Set it to let stalled requests end.
    released: threading.Event | None = None

    def alerts(self) -> list[list[tuple[str, str]]]:
        """Status and summary of the alerts of every request."""
        return [[(each["status"], each["annotations"]["summary"]) for each in body["alerts"]] for body in self.bodies]


def server_tls(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1, and the context of a server with it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    files: list[str | Path] = ["-keyout", key, "-out", certificate]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *subject], check=True, capture_output=True
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return certificate, context


@contextmanager
def webhook_server(tls: ssl.SSLContext | None = None) -> Iterator[Webhooks]:
    """A running server, with TLS if a context is given."""
    webhooks = Webhooks()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if webhooks.released is not None:
                webhooks.released.wait(PATIENCE_SECONDS)
            webhooks.headers.append(dict(self.headers))
            webhooks.bodies.append(json.loads(body))
            answer = f"path {self.path}, token {self.headers.get('Authorization')}".encode()
            self.send_response(webhooks.status)
            if webhooks.status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Standard error is for failures of tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    webhooks.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}/hook/SECRETPATH"
    try:
        yield webhooks
    finally:
        if webhooks.released is not None:
            webhooks.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mails:
    """Mails that an SMTP server accepted."""

    port: int = 0
    received: list[EmailMessage] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    #: User name and password of every login.
    logins: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, *arguments: Any) -> AuthResult:
        """Accept the login with the password `hunter2`, as an authenticator of aiosmtpd."""
        login = arguments[-1]
        self.logins.append((login.login.decode(), login.password.decode()))
        return AuthResult(success=login.password == b"hunter2")

    async def handle_RCPT(self, *arguments: Any) -> str:  # noqa: N802  # the name is aiosmtpd's
        """Accept a recipient, unless it is to be refused."""
        _, _, envelope, address, _ = arguments
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, *arguments: Any) -> str:  # noqa: N802  # the name is aiosmtpd's
        """Keep a mail."""
        mail = BytesParser(policy=policy.default).parsebytes(arguments[2].content)
        self.received.append(mail)
        return "250 OK"


@contextmanager
def smtp_server(tls: ssl.SSLContext | None = None) -> Iterator[Mails]:
    """A running SMTP server; with a context it requires STARTTLS and a login."""
    port = PortReservation()
    mails = Mails(port.port)
    security: dict[str, Any] = {}
    if tls is not None:
        security = {"tls_context": tls, "require_starttls": True, "auth_required": True, "authenticator": mails}
    controller = Controller(mails, hostname="127.0.0.1", port=port.port, **security)
    controller.start()
    try:
        yield mails
    finally:
        controller.stop()
        port.release()


@dataclass
class Evaluators:
    """Evaluators of one file of rules, one after the other, with a clock that stands still."""

    root: str
    rules: Path
    now_ms: int
    lines: list[str] = field(default_factory=list)

    def started(self) -> AlertEvaluator:
        """An evaluator as a new process has it."""
        rules = load_rules(str(self.rules))
        return AlertEvaluator(self.root, rules, AlertStore(self.root), lambda: self.now_ms, EvaluationLog(self.lines.append))

    def after(self, seconds: float) -> AlertEvaluator:
        """A restart, after some time."""
        self.now_ms += round(seconds * 1000)
        return self.started()


def states(evaluator: AlertEvaluator) -> list[tuple[str, str]]:
    """Rule and state of the alerts."""
    alerts: list[Alert] = list(evaluator.alerts.values())
    return sorted((alert.key.rule, alert.state.value) for alert in alerts)
