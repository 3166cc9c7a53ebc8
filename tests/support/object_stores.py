"""Object stores on loopback: Azurite, which is Microsoft's emulator of Azure, fake-gcs-server, and the S3 server of moto.

Azurite and fake-gcs-server lock while they check the condition of a conditional write, so they prove mutual exclusion; moto does
not.
"""

import base64
import hashlib
import hmac
import http.client
import itertools
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest
from checked_commands import checked
from deployment_tools import go_program
from eventually import eventually
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.runtime.cache.entry import make_once
from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.progress import Progress

#: The newest release for Node.js 20.
AZURITE = "azurite@3.35.0"

#: The emulator of Google Cloud Storage, behind `gcs_gateway`.
FAKE_GCS = ("fake-gcs-server", "github.com/fsouza/fake-gcs-server@v1.56.1")
_GATEWAY = Path(__file__).with_name("gcs_gateway.py")


#: Account and key of every emulator, from Microsoft's documentation.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_API_VERSION = "2021-12-02"

_numbers = itertools.count()


@dataclass(frozen=True)
class StoreServer:
    """A running store: its address, and the environment with which clients find it."""

    name: str
    endpoint: str
    environment: Mapping[str, str]

    def new_root(self) -> str:
        """URI of a folder in a new bucket. No two tests share one, because clients of a process are kept by their URI."""
        bucket = f"bucket-{next(_numbers)}"
        if self.name == "s3":
            _request(self.endpoint, "PUT", f"/{bucket}", {})
            return f"s3://{bucket}/kafka/prod"
        if self.name == "gcs":
            _request(self.endpoint, "POST", "/storage/v1/b", {"Content-Type": "application/json"}, json.dumps({"name": bucket}))
            return f"gs://{bucket}/kafka/prod"
        path = f"/{_ACCOUNT}/{bucket}?restype=container"
        _request(self.endpoint, "PUT", path, _signed(f"/{_ACCOUNT}/{_ACCOUNT}/{bucket}\nrestype:container"))
        return f"abfss://{bucket}@{_ACCOUNT}.dfs.core.windows.net/kafka/prod"

    def behind(self, proxy: str) -> "StoreServer":
        """The same store for clients of a proxy."""
        changed = {name: value.replace(self.endpoint, proxy) for name, value in self.environment.items()}
        return StoreServer(self.name, self.endpoint, changed)


@contextmanager
def moto_server() -> Iterator[StoreServer]:
    """An S3 server without persistence."""
    reserved = PortReservation()
    port = reserved.port
    endpoint = f"http://127.0.0.1:{port}"
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test-key",
        "AWS_SECRET_ACCESS_KEY": "test-secret",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    code = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    with _running([sys.executable, "-c", code], reserved):
        yield StoreServer("s3", endpoint, environment)


@contextmanager
def azurite() -> Iterator[StoreServer]:
    """A blob server of Azurite in memory. Skips the test if Node.js is not installed."""
    reserved = PortReservation()
    port = reserved.port
    endpoint = f"http://127.0.0.1:{port}"
    main = azurite_folder() / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    options = ["--blobPort", str(port), "--skipApiVersionCheck", "--loose", "--silent", "--inMemoryPersistence"]
    with _running([_toolchain("node"), str(main), *options, "--disableTelemetry"], reserved):
        yield StoreServer("azure", endpoint, {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": endpoint})


@contextmanager
def fake_gcs_server() -> Iterator[StoreServer]:
    """A server of Google Cloud Storage in memory. Skips the test if Go is not installed."""
    reserved = PortReservation()
    address = f"127.0.0.1:{reserved.port}"
    options = [
        "-backend",
        "memory",
        "-scheme",
        "http",
        "-host",
        "127.0.0.1",
        "-port",
        str(reserved.port),
        "-public-host",
        address,
    ]
    with _running([str(go_program(*FAKE_GCS)), *options, "-log-level", "error"], reserved):
        command = [sys.executable, str(_GATEWAY), address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
            assert gateway.stdout is not None
            try:
                endpoint = f"http://127.0.0.1:{int(gateway.stdout.readline())}"
                account = {"gcs_base_url": endpoint, "disable_oauth": True}
                key = json.dumps({**account, "client_email": "", "private_key": "", "private_key_id": ""})
                yield StoreServer("gcs", endpoint, {"GOOGLE_SERVICE_ACCOUNT_KEY": key})
            finally:
                gateway.terminate()
                gateway.wait(PATIENCE_SECONDS)


def install_azurite(progress: Progress) -> None:
    """Install Azurite once, if Node.js is on the machine."""
    if shutil.which("node") and shutil.which("npm"):
        azurite_folder(progress)


def install_fake_gcs_server(progress: Progress) -> None:
    """Build fake-gcs-server once, if Go is on the machine."""
    if shutil.which("go"):
        go_program(*FAKE_GCS, progress)


def azurite_folder(progress: Progress | None = None) -> Path:
    """Folder of Azurite with its packages, installed once."""
    npm = _toolchain("npm")

    def install(folder: Path) -> None:
        if progress:
            progress(f"installing {AZURITE} (about 20 s, once)")
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        checked(npm, "install", *options, AZURITE, cwd=folder)

    return make_once(cache_root() / "clients" / AZURITE, install)


def _toolchain(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: Azurite needs Node.js 20 or newer, with npm")
    return found


@contextmanager
def _running(command: list[str], reserved: PortReservation) -> Iterator[None]:
    port = reserved.port
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(f"port {port} accepts connections", lambda: _accepts(port), lambda accepts: accepts)
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
            reserved.release()


def _accepts(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _signed(resource: str) -> dict[str, str]:
    """Headers of a request without a body, signed with the emulator's key."""
    named = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _API_VERSION}
    text = "\n".join(["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in named.items()), resource])
    signature = base64.b64encode(hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()).decode()
    return {**named, "Authorization": f"SharedKey {_ACCOUNT}:{signature}"}


def _request(endpoint: str, method: str, path: str, headers: Mapping[str, str], body: str | None = None) -> None:
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), text
    finally:
        connection.close()
