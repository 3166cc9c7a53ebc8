"""Kustomize builds the overlays, kubeconform checks the result, strictly and with the definitions of custom resources."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployment_tools import DEPLOY, KUSTOMIZE, documents, go_program
from grafana_boards import boards
from kubernetes_schemas import VERSIONS, findings, pods, write_schemas
from patience import PATIENCE_SECONDS

from pipelines.cli.parser import parser

pytestmark = [pytest.mark.slow, pytest.mark.deployment]

FOLDER = DEPLOY / "kubernetes"
OVERLAYS = ("cron", "follow", "spark-operator")


def built(overlay: str) -> str:
    """The resources of an overlay."""
    command = [str(go_program(*KUSTOMIZE)), "build", str(FOLDER / "overlays" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_schemas(tmp_path_factory.mktemp("schemas"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_resource_follows_its_schema(overlay: str, version: str, schemas: Path) -> None:
    assert findings(built(overlay), version, schemas) == []


@pytest.mark.parametrize(
    ("overlay", "right", "wrong", "resource"),
    [
        ("cron", "concurrencyPolicy: Forbid", "concurrencyPolicies: Forbid", "CronJob/"),
        ("cron", "honorLabels: true", "honourLabels: true", "ServiceMonitor/"),
        ("follow", "metricRelabelings:", "metricRelabeling:", "PodMonitor/"),
        ("cron", "      record: topic", "      records: topic", "PrometheusRule/"),
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


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_run_our_commands_without_privileges(overlay: str) -> None:
    found = list(pods(documents(built(overlay))))
    assert found
    for _, spec in found:
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


def of_kind(overlay: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in documents(built(overlay)) if each["kind"] == kind]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_that_share_a_volume_are_on_one_node(overlay: str) -> None:
    """Only one node can mount it. The affinity of a pod has to match its own labels, or the first one would never start."""
    for labels, spec in pods(documents(built(overlay))):
        shares = any("persistentVolumeClaim" in volume for volume in spec["volumes"])
        assert shares is (overlay != "spark-operator")
        assert shares is ("affinity" in spec)
        if shares:
            (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert term["topologyKey"] == "kubernetes.io/hostname"
            assert term["labelSelector"]["matchLabels"].items() <= labels.items()


def test_every_service_has_probes_at_paths_that_it_answers() -> None:
    probed = {}
    for labels, spec in pods(documents(built("follow"))):
        (container,) = spec["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        name = labels["app.kubernetes.io/component"]
        for kind in ("startup", "readiness", "liveness"):
            if found := container.get(f"{kind}Probe"):
                probed[name, kind] = (found["httpGet"]["path"], ports[found["httpGet"]["port"]])
        listening = [
            *container["args"],
            (FOLDER / "base" / "alerts.toml").read_text(),
            (FOLDER / "base" / "grouplake.toml").read_text(),
        ]
        assert all(any(f"0.0.0.0:{port}" in each for each in listening) for port in ports.values())
    assert probed == {
        ("dashboard", "startup"): ("/ready/loaded", 8443),
        ("dashboard", "readiness"): ("/ready/loaded", 8443),
        ("dashboard", "liveness"): ("/health", 8443),
        ("alerts", "startup"): ("/health", 9405),
        ("alerts", "liveness"): ("/health", 9405),
        ("job", "startup"): ("/health", 9404),
        ("job", "readiness"): ("/ready", 9404),
        ("job", "liveness"): ("/health", 9404),
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_have_limits_of_memory_and_disk(overlay: str) -> None:
    for _, spec in pods(documents(built(overlay))):
        (container,) = spec["containers"]
        assert {"memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
        for volume in spec["volumes"]:
            assert volume.get("emptyDir", {"sizeLimit": ""}).keys() == {"sizeLimit"}, volume


def test_scheduled_pods_have_a_deadline_above_that_of_a_hung_run() -> None:
    hung = tomllib.loads((DEPLOY.parent / "conf" / "local.toml").read_text())["job"]["hung_seconds"]
    (run,) = of_kind("cron", "CronJob")
    assert run["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] > hung


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_rules_and_boards_are_those_of_the_project(overlay: str) -> None:
    (rule,) = of_kind(overlay, "PrometheusRule")
    files = ("grouplake-alerts.yml", "grouplake-recording.yml")
    groups = [group for name in files for group in yaml.safe_load((DEPLOY / "prometheus" / name).read_text())["groups"]]
    assert rule["spec"]["groups"] == groups
    maps = [each for each in of_kind(overlay, "ConfigMap") if "grafana_dashboard" in each["metadata"]["labels"]]
    assert {name: json.loads(text) for each in maps for name, text in each["data"].items()} == boards()
    # the rule GrouplakeDown selects the target by this label
    (monitor,) = of_kind(overlay, "ServiceMonitor")
    (service,) = of_kind(overlay, "Service")
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "grouplake"
    assert any('up{job="grouplake"}' in each["expr"] for group in groups for each in group["rules"])


def test_prometheus_scrapes_the_position_of_the_job() -> None:
    (monitor,) = of_kind("follow", "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (labels, spec), *_ = [each for each in pods(documents(built("follow"))) if each[0]["app.kubernetes.io/component"] == "job"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert endpoint["port"] in {port["name"] for port in spec["containers"][0]["ports"]}
    (policy,) = [each for each in of_kind("follow", "NetworkPolicy") if each["metadata"]["name"] == "job-metrics"]
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} == {endpoint["port"]}


def test_the_driver_of_spark_reaches_the_api_server() -> None:
    (policy,) = [each for each in of_kind("spark-operator", "NetworkPolicy") if each["metadata"]["name"] == "executors"]
    reached = {port["port"] for rule in policy["spec"]["egress"] if "to" not in rule for port in rule["ports"]}
    assert reached == {443, 6443}
    (scheduled,) = of_kind("spark-operator", "ScheduledSparkApplication")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= scheduled["spec"]["template"]["driver"]["labels"].items()
