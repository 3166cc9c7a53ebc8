"""Formatting of the storage of KRaft nodes, without which they do not start."""

import base64
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from pipelines.examples.private.kafka.configuration import logging_arguments
from pipelines.examples.private.kafka.distribution import PrivateKafkaError
from pipelines.examples.private.kafka.process import java_command

_LIMIT_SECONDS = 90


def new_cluster_id() -> str:
    """A random cluster id."""
    # the command line would take an id that begins with "-" for an option; Kafka's Uuid.randomUuid avoids it too
    return "g" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def format_storage(version: str, jars: Path, configuration: Path, cluster_id: str, scram_users: Mapping[str, str]) -> None:
    """Format the log folder named in `configuration`; `scram_users`: user → password, for SCRAM-SHA-256.

    Raises PrivateKafkaError with the storage tool's reason.
    """
    arguments = ["format", "-t", cluster_id, "-c", str(configuration)]
    for user, password in scram_users.items():
        arguments += ["-S", f"SCRAM-SHA-256=[name={user},password={password}]"]
    command = java_command(jars, "kafka.tools.StorageTool", arguments, logging_arguments(configuration.parent))
    run = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False)
    if run.returncode != 0:
        lines = (run.stdout + run.stderr).strip().splitlines() or ["no output"]
        why = next((line for line in lines if "Exception" in line), lines[-1])
        raise PrivateKafkaError(f"kafka.tools.StorageTool of Kafka {version} cannot format the storage: {why}")
