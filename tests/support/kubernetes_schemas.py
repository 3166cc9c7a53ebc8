"""Schemas of resources for kubeconform: those of Kubernetes, of the Prometheus operator and of spark-operator."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deployment_tools import (
    KUBECONFORM,
    KUBERNETES_SCHEMAS,
    PROMETHEUS_OPERATOR,
    SPARK_OPERATOR_TYPES,
    documents,
    go_files,
    go_program,
    python_packages,
)
from patience import PATIENCE_SECONDS

#: Oldest and newest versions with which the files are checked.
VERSIONS = ("1.30.0", "1.34.0")
#: Resources of the Prometheus operator, by the name of the file of their definition.
_MONITORING = ("servicemonitor", "podmonitor", "prometheusrule")
#: Prints the schema of a type, since the types are not importable beside those of our environment.
_SPARK_SCHEMA = (
    "import json; from kubeflow_spark_api.models.spark_v1beta2_scheduled_spark_application import "
    "SparkV1beta2ScheduledSparkApplication as T; print(json.dumps(T.model_json_schema(by_alias=True)))"
)


def closed(schema: Any) -> Any:
    """The schema, with unknown keys refused in every object: without that a strict check accepts misspelt keys."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    is_object = isinstance(found.get("properties"), dict) and found.get("type", "object") == "object"
    if is_object and not found.get("additionalProperties") and not found.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found


def _monitoring_schema(name: str) -> dict[str, Any]:
    """Schema of a resource of the Prometheus operator, from its own definition."""
    (definition,) = documents(
        (go_files(*PROMETHEUS_OPERATOR) / f"monitoring.coreos.com_{name}s.yaml").read_text(encoding="utf-8")
    )
    found: dict[str, Any] = closed(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    found["properties"]["metadata"] = {"type": "object"}
    return found


def _spark_application_schema() -> dict[str, Any]:
    """Schema of ScheduledSparkApplication, from the published types of spark-operator."""
    packages = python_packages(SPARK_OPERATOR_TYPES)
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-c", _SPARK_SCHEMA]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, env=environment)
    found: dict[str, Any] = closed(json.loads(done.stdout))
    return found


def write_schemas(folder: Path) -> Path:
    """Fill a folder with the schemas of custom resources, and a folder per version with those of Kubernetes."""
    published = python_packages(KUBERNETES_SCHEMAS) / "kubernetes_validate" / "kubernetes-json-schema"
    for version in VERSIONS:
        (folder / version).mkdir()
        for file in (published / f"v{version}-local-strict").iterdir():
            # the ids and paths are those of a server, from which no schema is read here
            schema = json.loads(file.read_text(encoding="utf-8").replace("/api/_definitions.json", "_definitions.json"))
            schema.pop("$id", None)
            (folder / version / file.name).write_text(json.dumps(schema), encoding="utf-8")
    for name in _MONITORING:
        (folder / f"{name}_v1.json").write_text(json.dumps(_monitoring_schema(name)))
    (folder / "scheduledsparkapplication_v1beta2.json").write_text(json.dumps(_spark_application_schema()))
    return folder


def findings(text: str, version: str, schemas: Path) -> list[str]:
    """What kubeconform refuses in these resources, as `KIND/NAME: MESSAGE`."""
    command = [
        str(go_program(*KUBECONFORM)),
        "-strict",
        "-output=json",
        f"-kubernetes-version={version}",
        f"-schema-location={schemas}/{version}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json",
        f"-schema-location={schemas}/{{{{ .ResourceKind }}}}_{{{{ .ResourceAPIVersion }}}}.json",
        "-",
    ]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.stderr == "", done.stderr
    return [f"{each['kind']}/{each['name']}: {each['msg']}" for each in json.loads(done.stdout).get("resources", [])]


def pods(resources: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Labels and specifications of the pods of CronJobs and Deployments."""
    for resource in resources:
        spec = resource.get("spec", {})
        if resource["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if resource["kind"] in {"CronJob", "Deployment"}:
            yield spec["template"]["metadata"]["labels"], spec["template"]["spec"]
