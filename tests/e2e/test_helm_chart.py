"""Helm lints and renders the chart, kubeconform checks the result, and its pods are those of the overlays of kustomize."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployment_tools import DEPLOY, HELM, documents, go_program
from grafana_boards import boards
from kubernetes_schemas import VERSIONS, findings, pods, write_schemas
from patience import PATIENCE_SECONDS

from pipelines.alerts.rules_file import load_rules
from pipelines.cli.parser import parser
from pipelines.runtime.configuration import load_configuration

pytestmark = [pytest.mark.slow, pytest.mark.deployment]

CHART = DEPLOY / "helm" / "grouplake"
STORE = "abfss://groups@account.dfs.core.windows.net/main"
#: Values beside the defaults, each with the kinds of its workloads.
SETTINGS: dict[str, tuple[str, ...]] = {
    "follow": (),
    "schedule": ("job.mode=schedule",),
    "store": ("job.mode=schedule", f"tables={STORE}", "job.scheduleMinutes=60"),
    "shared": ("persistence.accessMode=ReadWriteMany", "persistence.storageClass=nfs"),
    "small": ("dashboard.enabled=false", "alerts.enabled=false", "monitoring.enabled=false", "networkPolicy.enabled=false"),
}


def helm(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(go_program(*HELM)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def rendered(*values: str) -> str:
    settings = [part for each in values for part in ("--set", each)]
    done = helm("template", "east", CHART, "--namespace", "grouplake", "--kube-version", VERSIONS[-1], *settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_schemas(tmp_path_factory.mktemp("schemas"))


def test_lint_finds_nothing() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("name", SETTINGS)
def test_rendered_resources_follow_their_schemas(name: str, schemas: Path) -> None:
    text = rendered(*SETTINGS[name])
    for version in VERSIONS:
        assert findings(text, version, schemas) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_pods_of_the_chart_run_our_commands_without_privileges(name: str) -> None:
    found = list(pods(documents(rendered(*SETTINGS[name]))))
    assert len(found) == (1 if name == "small" else 3)
    for labels, spec in found:
        (container,) = spec["containers"]
        assert parser().parse_args(container["args"]).command is not None
        assert spec["securityContext"]["runAsUser"] == 185
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert {volume["name"] for volume in spec["volumes"]} == {mount["name"] for mount in container["volumeMounts"]}
        assert {"memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
        assert ("affinity" in spec) is (name in {"follow", "schedule", "small"})
        if "affinity" in spec:
            (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert term["labelSelector"]["matchLabels"].items() <= labels.items()
        if labels["app.kubernetes.io/component"] != "job" or name in {"follow", "shared", "small"}:
            assert {"startupProbe", "livenessProbe"} <= container.keys()


def test_one_number_is_the_schedule_and_what_readers_expect() -> None:
    for minutes, cron in ((5, "*/5 * * * *"), (60, "0 * * * *")):
        resources = documents(rendered("job.mode=schedule", f"job.scheduleMinutes={minutes}"))
        (run,) = (each["spec"] for each in resources if each["kind"] == "CronJob")
        (container,) = run["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        assert (run["schedule"], run["concurrencyPolicy"]) == (cron, "Forbid")
        assert parser().parse_args(container["args"]).schedule == minutes * 60
        assert run["startingDeadlineSeconds"] < minutes * 60


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("job.scheduleMinutes=7", "scheduleMinutes"),
        ("job.mode=cron", "mode"),
        ("sources=kafka://b:9092", "sources"),
        ("persistence.accessMode=ReadWriteOncePod", "accessMode"),
    ],
)
def test_wrong_values_are_refused(value: str, message: str) -> None:
    done = helm("template", "east", CHART, "--set", value)
    assert done.returncode == 1
    assert message in done.stderr


def test_configuration_rules_and_boards_of_the_chart(tmp_path: Path) -> None:
    resources = documents(rendered())
    maps: dict[str, Any] = {each["metadata"]["name"]: each["data"] for each in resources if each["kind"] == "ConfigMap"}
    for name in ("kafka_username", "kafka_password", "tls.crt", "tls.key", "users"):
        (tmp_path / name).write_text("hidden\n")
    for name, text in maps["east"].items():
        (tmp_path / name).write_text(text)
    loaded = load_configuration(str(tmp_path / "grouplake.toml"), {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert loaded.metrics["allow_remote"] is True
    assert load_rules(str(tmp_path / "alerts.toml")).probes.listen == "0.0.0.0:9405"
    of_boards = {name: json.loads(text) for key, data in maps.items() if key != "east" for name, text in data.items()}
    assert of_boards == boards()
    (rule,) = (each for each in resources if each["kind"] == "PrometheusRule")
    files = ("grouplake-alerts.yml", "grouplake-recording.yml")
    groups = [group for file in files for group in yaml.safe_load((DEPLOY / "prometheus" / file).read_text())["groups"]]
    assert rule["spec"]["groups"] == groups


def test_the_defaults_of_the_chart_are_those_of_kustomize() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    base = DEPLOY / "kubernetes" / "base"
    for key, file in (("configuration", "grouplake.toml"), ("alerts", "alerts.toml")):
        text = values[key]["rules"] if key == "alerts" else values[key]
        assert tomllib.loads(text) == tomllib.loads((base / file).read_text(encoding="utf-8")), file
