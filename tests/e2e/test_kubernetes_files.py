"""Kustomize builds the overlays, kubeconform checks the result, strictly and with the definitions of custom resources."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deployment_tools import (
    DEPLOY,
    KUBECONFORM,
    KUBERNETES_SCHEMAS,
    KUSTOMIZE,
    PROMETHEUS_OPERATOR,
    SPARK_OPERATOR_TYPES,
    documents,
    go_files,
    go_program,
    python_packages,
)
from patience import PATIENCE_SECONDS

from pipelines.cli.parser import parser

pytestmark = [pytest.mark.slow, pytest.mark.deployment]

FOLDER = DEPLOY / "kubernetes"
OVERLAYS = ("cron", "follow", "spark-operator")
#: Oldest and newest versions with which the files are checked.
VERSIONS = ("1.30.0", "1.34.0")
#: Prints the schema of a type, since the types are not importable beside those of our environment.
_SPARK_SCHEMA = (
    "import json; from kubeflow_spark_api.models.spark_v1beta2_scheduled_spark_application import "
    "SparkV1beta2ScheduledSparkApplication as T; print(json.dumps(T.model_json_schema(by_alias=True)))"
)


def built(overlay: str) -> str:
    """The resources of an overlay."""
    command = [str(go_program(*KUSTOMIZE)), "build", str(FOLDER / "overlays" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


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


def service_monitor_schema() -> dict[str, Any]:
    """Schema of ServiceMonitor, from the operator's own definition."""
    file = "monitoring.coreos.com_servicemonitors.yaml"
    (definition,) = documents((go_files(*PROMETHEUS_OPERATOR) / file).read_text(encoding="utf-8"))
    found: dict[str, Any] = closed(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    found["properties"]["metadata"] = {"type": "object"}
    return found


def spark_application_schema() -> dict[str, Any]:
    """Schema of ScheduledSparkApplication, from the published types of spark-operator."""
    packages = python_packages(SPARK_OPERATOR_TYPES)
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-c", _SPARK_SCHEMA]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, env=environment)
    found: dict[str, Any] = closed(json.loads(done.stdout))
    return found


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the schemas of custom resources, and a folder per version with those of Kubernetes."""
    folder = tmp_path_factory.mktemp("schemas")
    published = python_packages(KUBERNETES_SCHEMAS) / "kubernetes_validate" / "kubernetes-json-schema"
    for version in VERSIONS:
        (folder / version).mkdir()
        for file in (published / f"v{version}-local-strict").iterdir():
            # the ids and paths are those of a server, from which no schema is read here
            schema = json.loads(file.read_text(encoding="utf-8").replace("/api/_definitions.json", "_definitions.json"))
            schema.pop("$id", None)
            (folder / version / file.name).write_text(json.dumps(schema), encoding="utf-8")
    (folder / "servicemonitor_v1.json").write_text(json.dumps(service_monitor_schema()))
    (folder / "scheduledsparkapplication_v1beta2.json").write_text(json.dumps(spark_application_schema()))
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_resource_follows_its_schema(overlay: str, version: str, schemas: Path) -> None:
    assert findings(built(overlay), version, schemas) == []


@pytest.mark.parametrize(
    ("overlay", "right", "wrong", "resource"),
    [
        ("cron", "concurrencyPolicy: Forbid", "concurrencyPolicies: Forbid", "CronJob/"),
        ("cron", "honorLabels: true", "honourLabels: true", "ServiceMonitor/"),
        ("cron", "runAsNonRoot: true", "runAsNotRoot: true", "Deployment/"),
        ("spark-operator", "sparkVersion: 4.2.0", "sparkVersions: 4.2.0", "ScheduledSparkApplication/"),
        ("spark-operator", "instances: 2", "instance: 2", "ScheduledSparkApplication/"),
    ],
)
def test_a_misspelt_key_is_found(overlay: str, right: str, wrong: str, resource: str, schemas: Path) -> None:
    text = built(overlay)
    assert right in text
    found = findings(text.replace(right, wrong), VERSIONS[-1], schemas)
    assert any(each.startswith(resource) and "additional properties" in each for each in found), found


def pod_specs(resources: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Specifications of pods in CronJobs and Deployments."""
    for resource in resources:
        spec = resource.get("spec", {})
        if resource["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if resource["kind"] in {"CronJob", "Deployment"}:
            yield spec["template"]["spec"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_run_our_commands_without_privileges(overlay: str) -> None:
    specs = list(pod_specs(documents(built(overlay))))
    assert specs
    for spec in specs:
        assert spec["automountServiceAccountToken"] is False
        assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, 185)
        (container,) = spec["containers"]
        assert container["image"].startswith("grouplake:0")
        assert parser().parse_args(container["args"]).command is not None
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {volume["name"] for volume in spec["volumes"]} == {mount["name"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_one_writer_at_a_time(overlay: str) -> None:
    """The schema of the custom resource accepts any text as policy."""
    resources = documents(built(overlay))
    for resource in resources:
        if resource["kind"] in {"CronJob", "ScheduledSparkApplication"}:
            assert resource["spec"]["concurrencyPolicy"] == "Forbid"
    for job in (each for each in resources if each["metadata"]["name"] == "job"):
        assert (job["spec"]["strategy"], job["spec"]["replicas"]) == ({"type": "Recreate"}, 1)


def test_the_arguments_of_the_spark_application_are_ours() -> None:
    (scheduled,) = (each for each in documents(built("spark-operator")) if each["kind"] == "ScheduledSparkApplication")
    template = scheduled["spec"]["template"]
    assert parser().parse_args(template["arguments"]).command is not None
    name = template["mainApplicationFile"].rpartition("/")[2]
    assert (DEPLOY / "container" / name).exists()


def test_no_resource_has_a_secret() -> None:
    for overlay in OVERLAYS:
        assert {each["kind"] for each in documents(built(overlay))} & {"Secret"} == set()


def test_copies_of_configuration_files_agree() -> None:
    """Kustomize reads no file outside of its folder."""
    assert (FOLDER / "base" / "alerts.toml").read_text() == (DEPLOY / "compose" / "alerts.toml").read_text()
    base = tomllib.loads((FOLDER / "base" / "grouplake.toml").read_text())
    scaled = tomllib.loads((FOLDER / "overlays" / "spark-operator" / "grouplake.toml").read_text())
    assert scaled == {**base, "spark": {"master": ""}}
