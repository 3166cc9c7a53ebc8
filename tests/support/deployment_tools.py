"""Programs and schemas with which the files of `deploy` are checked, downloaded once into the cache folder."""

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from checked_commands import checked, with_variables

from pipelines.runtime.cache.entry import make_once
from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.progress import Progress

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_KIND = "tools"
#: The folder in which installations run, because the tools read settings of a project around the current folder.
_NO_PROJECT = Path("/")
#: What names of folders leave out of requirements and paths.
_UNUSUAL = re.compile(r"[^\w.-]+")

KUSTOMIZE = ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1")
KUBECONFORM = ("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0")
HELM = ("helm", "helm.sh/helm/v3/cmd/helm@v3.18.6")
#: Module and folder with the schema of compose files.
COMPOSE = ("github.com/compose-spec/compose-go/v2@v2.9.0", "schema")
#: Module and folder with the definitions of the Prometheus operator's resources.
PROMETHEUS_OPERATOR = ("github.com/prometheus-operator/prometheus-operator@v0.85.0", "example/prometheus-operator-crd")
#: Schemas of every kind of Kubernetes, in the form that kubeconform reads.
KUBERNETES_SCHEMAS = "kubernetes-validate==1.37.0"
#: Types of spark-operator's resources.
SPARK_OPERATOR_TYPES = "kubeflow-spark-api==2.4.0"
#: Types of the resources in a Databricks bundle.
DATABRICKS_TYPES = "databricks-bundles==1.22.1"
AIRFLOW = "apache-airflow==3.3.2"
#: The build backend of pyproject.toml.
BUILD_REQUIREMENTS: tuple[str, ...] = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
)


def install_deployment_tools(progress: Progress) -> None:
    """Install what only tests marked `slow` need."""
    for requirement in (KUBERNETES_SCHEMAS, SPARK_OPERATOR_TYPES, DATABRICKS_TYPES):
        python_packages(requirement)
    python_environment(AIRFLOW)
    for program in (KUSTOMIZE, KUBECONFORM, HELM):
        go_program(*program, progress)
    go_files(*PROMETHEUS_OPERATOR)


def documents(text: str) -> list[dict[str, Any]]:
    """The documents of a YAML text."""
    return [document for document in yaml.safe_load_all(text) if document is not None]


@cache
def go_program(name: str, package: str, progress: Progress | None = None) -> Path:
    """The program `name` of a Go package, built once. Skips the test if Go is not installed."""
    go = _go()

    def build(folder: Path) -> None:
        if progress:
            progress(f"building {name} (about a minute, once)")
        checked(go, "install", package, env=with_variables(GOBIN=str(folder), GOFLAGS="-buildvcs=false"), cwd=_NO_PROJECT)

    return _made(f"{name}-{package.rpartition('@')[2]}", build) / name


@cache
def go_files(module: str, path: str) -> Path:
    """The folder `path` of a Go module, downloaded once. Skips the test if Go is not installed."""
    go = _go()

    def download(folder: Path) -> None:
        found = json.loads(checked(go, "mod", "download", "-json", module, cwd=_NO_PROJECT))
        shutil.copytree(Path(found["Dir"]) / path, folder, dirs_exist_ok=True)
        # as Go leaves its own folders read-only
        folder.chmod(0o755)

    return _made(f"{module}-{path}", download)


@cache
def python_packages(*requirements: str) -> Path:
    """Folder with Python packages that our own environment does not have."""
    uv = _uv()

    def install(folder: Path) -> None:
        checked(uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", folder, *requirements, cwd=_NO_PROJECT)

    return _made("_".join(requirements), install)


@cache
def python_environment(*requirements: str) -> Path:
    """A virtual environment with packages that cannot be in ours, because they pin other versions."""
    uv = _uv()

    def create(folder: Path) -> None:
        checked(uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, "--clear", folder, cwd=_NO_PROJECT)
        python = folder / "bin" / "python"
        checked(uv, "pip", "install", "--quiet", "--python", python, *requirements, cwd=_NO_PROJECT)

    return _made(f"environment-{'_'.join(requirements)}", create)


def _made(name: str, make: Callable[[Path], None]) -> Path:
    return make_once(cache_root() / _KIND / _UNUSUAL.sub("-", name), make)


def _uv() -> str:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("no uv beside Python: `make setup` installs it")
    return str(uv)


def _go() -> str:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go in PATH")
    return go
