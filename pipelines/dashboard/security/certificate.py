"""The certificate of the server, read again when its files have changed: a renewal needs no restart."""

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.dashboard.security.file_version import FileVersion, file_version
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

    def version(self) -> tuple[FileVersion, FileVersion]:
        """A value that differs once a file has been replaced."""
        return file_version(self.certificate), file_version(self.key)


class RenewedCertificate:
    """The certificate of a running server. Each handshake looks for new files, at most once a second.

    Files that cannot be used are reported and not used. A handshake between the replacement of the one file and of the other
    finds such a pair, and the next one the new certificate.
    """

    _SECONDS = 1.0

    def __init__(self, files: CertificateFiles, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises UsageError if the files cannot be used at the start."""
        self._files, self._progress, self._clock = files, progress, clock
        self._version = files.version()
        self._newest = files.context()
        self._checked_at = clock()

    def context(self) -> ssl.SSLContext:
        """A context whose handshakes have the newest certificate."""
        context = self._files.context()
        # called at the start of each handshake, also for a client that names no server
        context.sni_callback = self._handshake_begins
        return context

    def _handshake_begins(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._refreshed()

    def _refreshed(self) -> ssl.SSLContext:
        now = self._clock()
        if now - self._checked_at < self._SECONDS:
            return self._newest
        self._checked_at = now
        version = self._files.version()
        if version != self._version:
            self._version = version
            try:
                self._newest = self._files.context()
                self._progress(f"certificate: {self._files.certificate} is loaded")
            except UsageError as error:
                self._progress(f"certificate: the previous one is used: {error}")
        return self._newest


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
