"""Debian's Prometheus, which scrapes what a test exposes."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
from authorities import AUTHORITIES
from debian_packages import prometheus
from eventually import eventually
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.ports import PortReservation

Vector = list[dict[str, Any]]
_NO_ACCESS: Mapping[str, Any] = MappingProxyType({})


class PrometheusServer:
    """A server with its data in `folder`. It scrapes a target every second; `access` has TLS and credentials of the scrape."""

    def __init__(
        self,
        folder: Path,
        target: str,
        labels: Mapping[str, str],
        rule_files: tuple[Path, ...] = (),
        access: Mapping[str, Any] = _NO_ACCESS,
    ) -> None:
        configuration = folder / "prometheus.yml"
        job = {
            "job_name": "grouplake",
            "honor_labels": True,
            **access,
            "static_configs": [{"targets": [target], "labels": dict(labels)}],
        }
        # JSON is YAML
        configuration.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                    "scrape_configs": [job],
                    "rule_files": [str(path) for path in rule_files],
                }
            )
        )
        self._port = PortReservation()
        self.url = f"http://127.0.0.1:{self._port.port}"
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` closes it
        self._process = subprocess.Popen(
            [
                str(prometheus()),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
                "--log.level=warn",
            ],
            stdout=self._log,
            stderr=self._log,
        )

    def __enter__(self) -> "PrometheusServer":
        eventually("the first scrape", lambda: self.value("up"), lambda value: value == 1, unless=self._failure)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)
        self._log.close()
        self._port.release()

    def query(self, expression: str) -> Vector:
        """Result of an expression now. AssertionError for an invalid one."""
        body = self._answer("query", {"query": expression})
        assert body["status"] == "success", f"{expression}: {body}"
        found: Vector = body["data"]["result"]
        return found

    def value(self, expression: str) -> float | None:
        """The single value of an expression; None without one, and while the server does not answer, or that it is starting."""
        try:
            found = self.query(expression)
        except (httpx.TransportError, json.JSONDecodeError):
            return None
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def label_values(self, selector: str, label: str) -> set[str]:
        """Values of a label, as Grafana's `label_values` finds them."""
        return {each[label] for each in self._answer("series", {"match[]": selector})["data"] if label in each}

    def alerts(self) -> list[dict[str, Any]]:
        """Pending and firing alerts."""
        found: list[dict[str, Any]] = self._answer("alerts", {})["data"]["alerts"]
        return found

    def _answer(self, path: str, arguments: Mapping[str, str]) -> Any:
        response = httpx.get(f"{self.url}/api/v1/{path}", params=arguments, timeout=PATIENCE_SECONDS, verify=AUTHORITIES)
        return response.json()

    def _failure(self) -> str | None:
        if self._process.poll() is None:
            return None
        self._log.seek(0)
        return self._log.read()[-2000:]
