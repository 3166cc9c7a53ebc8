"""The certificate of the server, read again when its files have changed: a renewal needs no restart."""

import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from pipelines.dashboard.security.reread_files import RereadFiles
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress


@dataclass(frozen=True)
class CertificateFiles:
    """PEM files with the certificate, its chain, and its key."""

    certificate: str
    key: str

    def context(self) -> ssl.SSLContext:
        """A context of a server with this certificate. Raises UsageError if the files cannot be used."""
        for name, path in (("tls_certificate", self.certificate), ("tls_key", self.key)):
            read_secret(f"dashboard.{name}", path)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key, self._no_password)
        except ssl.SSLError as error:
            reason = error.reason or "no PEM files"
            raise UsageError(
                f"dashboard.tls_certificate {self.certificate} and tls_key {self.key} cannot be used: {reason}"
            ) from error
        return context

    def _no_password(self) -> str:
        # without this, OpenSSL would read a password from the terminal
        raise UsageError(f"dashboard.tls_key: {self.key} is encrypted: use a key without a password")


class RenewedCertificate:
    """The certificate of a running server, looked for at each handshake.

    A handshake between the replacement of the one file and of the other finds a pair that cannot be used, and the next one the
    new certificate.
    """

    def __init__(self, files: CertificateFiles, progress: Progress) -> None:
        """Raises UsageError if the files cannot be used at the start."""
        self._files, self._progress = files, progress
        self._newest = RereadFiles([files.certificate, files.key], files.context, self._report)

    def context(self) -> ssl.SSLContext:
        """A context whose handshakes have the newest certificate."""
        context = self._newest.value(time.monotonic())
        # called at the start of each handshake, also for a client that names no server
        context.sni_callback = self._handshake_begins
        return context

    def _report(self, error: UsageError | None) -> None:
        if error is None:
            self._progress(f"certificate: {self._files.certificate} is loaded")
        else:
            self._progress(f"certificate: the previous one is used: {error}")

    def _handshake_begins(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._newest.value(time.monotonic())


def read_secret(name: str, path: str) -> str:
    """The text of a file that the setting `name` names. Raises UsageError for a missing or empty one."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"{name}: cannot read {path}: {reason}") from error
    if not text.strip():
        raise UsageError(f"{name}: {path} is empty")
    return text
