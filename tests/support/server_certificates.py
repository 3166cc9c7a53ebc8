"""Self-signed certificates of servers on 127.0.0.1."""

import subprocess
from pathlib import Path


def self_made_certificate(folder: Path, days: int = 2) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is valid for `days`, and the same with its key in the one file that brokers need."""
    key, certificate, both = folder / "key.pem", folder / "certificate.pem", folder / "both.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", str(days)]
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *made, *subject], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return certificate, both
