"""Formatting of the storage of KRaft nodes, without which they do not start.

Kafka's tool starts a JVM for it, which takes seconds. Nodes of one release with the same settings differ in their ids alone, so
later nodes get a copy with ids of their own.
"""

import base64
import hashlib
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

from pipelines.examples.private.kafka.configuration import logging_arguments, write_properties
from pipelines.examples.private.kafka.distribution import PrivateKafkaError
from pipelines.examples.private.kafka.process import java_command
from pipelines.runtime.cache.entry import make_once
from pipelines.runtime.cache.folder import cache_root, remove_unused

KIND = "storage"

#: For a tool that hangs: beside other work its JVM may need a minute.
_LIMIT_SECONDS = 600
#: Beginnings of settings that change nothing but ids in the storage, and that differ between nodes.
_OF_ONE_NODE = ("log.dirs", "node.id", "controller.quorum.voters", "listener", "advertised.listeners", "ssl.", "sasl.")
_IDS = "meta.properties"


def new_cluster_id() -> str:
    """A random cluster id."""
    return _random_id()


def new_storage(
    version: str, jars: Path, configuration: Path, properties: Mapping[str, str], cluster_id: str, scram_users: Mapping[str, str]
) -> None:
    """Format the log folder named in `properties`, which are those of the file `configuration`.

    `scram_users`: user → password, for SCRAM-SHA-256. Their storage is never copied, because it has salted passwords.
    Raises PrivateKafkaError with the storage tool's reason.
    """
    if scram_users:
        format_storage(version, jars, configuration, cluster_id, scram_users)
        return
    common = sorted((name, value) for name, value in properties.items() if not name.startswith(_OF_ONE_NODE))
    digest = hashlib.sha256(repr(common).encode()).hexdigest()[:16]

    def format_once(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="private-kafka-storage-") as elsewhere:
            settings = write_properties(Path(elsewhere) / "server.properties", {**properties, "log.dirs": str(folder)})
            format_storage(version, jars, settings, cluster_id, {})
        remove_unused(KIND)

    _copy(make_once(cache_root() / KIND / f"{version}-{digest}", format_once), properties, cluster_id)


def _copy(formatted: Path, properties: Mapping[str, str], cluster_id: str) -> None:
    data = Path(properties["log.dirs"])
    shutil.copytree(formatted, data, dirs_exist_ok=True)
    lines = (data / _IDS).read_text().splitlines()
    ids = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    changed = {"node.id": properties["node.id"], "cluster.id": cluster_id}
    # since 3.7
    if "directory.id" in ids:
        changed["directory.id"] = _random_id()
    write_properties(data / _IDS, ids | changed)


def _random_id() -> str:
    # the command line would take an id that begins with "-" for an option; Kafka's Uuid.randomUuid avoids it too
    return "g" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def format_storage(version: str, jars: Path, configuration: Path, cluster_id: str, scram_users: Mapping[str, str]) -> None:
    """Run Kafka's tool for the log folder named in `configuration`. Raises PrivateKafkaError with its reason."""
    arguments = ["format", "-t", cluster_id, "-c", str(configuration)]
    for user, password in scram_users.items():
        arguments += ["-S", f"SCRAM-SHA-256=[name={user},password={password}]"]
    command = java_command(jars, "kafka.tools.StorageTool", arguments, logging_arguments(configuration.parent))
    run = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False)
    if run.returncode != 0:
        lines = (run.stdout + run.stderr).strip().splitlines() or ["no output"]
        why = next((line for line in lines if "Exception" in line), lines[-1])
        raise PrivateKafkaError(f"kafka.tools.StorageTool of Kafka {version} cannot format the storage: {why}")
