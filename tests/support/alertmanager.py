"""Debian's Alertmanager on loopback, which notifies a webhook."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from debian_packages import alertmanager_program
from eventually import eventually
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.ports import PortReservation

_CONFIGURATION = """
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {hook}
        send_resolved: true
"""


#: Folder of its templates, which Debian has compiled in; the package is not installed but unpacked elsewhere.
_TEMPLATES = b"/usr/share/prometheus/alertmanager"


class RunningAlertmanager:
    """A running Alertmanager."""

    def __init__(self, url: str) -> None:
        self.url = url

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that it holds active."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=PATIENCE_SECONDS) as response:
            found: list[dict[str, Any]] = json.load(response)
        return found

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=PATIENCE_SECONDS):
                return True
        except OSError:
            return False


@contextmanager
def alertmanager(folder: Path, hook: str) -> Iterator[RunningAlertmanager]:
    """An Alertmanager that notifies the webhook `hook`."""
    port = PortReservation()
    configuration = folder / "alertmanager.yml"
    configuration.write_text(_CONFIGURATION.format(hook=hook))
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(
            [
                _relocated(folder),
                f"--config.file={configuration}",
                f"--storage.path={folder / 'alertmanager'}",
                f"--web.listen-address=127.0.0.1:{port.port}",
                "--cluster.listen-address=",
            ],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            running = RunningAlertmanager(f"http://127.0.0.1:{port.port}")
            eventually("Alertmanager is ready", running.is_ready, unless=lambda: _ended(process, folder))
            yield running
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
            port.release()


def _relocated(folder: Path) -> Path:
    """A copy of the program that finds its templates in the working folder `folder`, by a path of the same length."""
    program = alertmanager_program()
    (folder / "am").symlink_to(program.parents[1] / "share" / "prometheus" / "alertmanager")
    path = b"./" * (len(_TEMPLATES) // 2 - 1) + b"am"
    assert len(path) == len(_TEMPLATES)
    copy = folder / "prometheus-alertmanager"
    copy.write_bytes(program.read_bytes().replace(_TEMPLATES, path))
    copy.chmod(0o700)
    return copy


def _ended(process: "subprocess.Popen[bytes]", folder: Path) -> str | None:
    return None if process.poll() is None else (folder / "alertmanager.log").read_text()
