"""Programs and schemas with which the files of `deploy` are checked, downloaded once into the cache folder."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.progress import Progress

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_KIND = "tools"
_SECONDS = 900

KUSTOMIZE = ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1")
KUBECONFORM = ("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0")
#: Its folder `schema` has the schema of compose files.
COMPOSE = "github.com/compose-spec/compose-go/v2@v2.9.0"
#: Its folder `example/prometheus-operator-crd` has the definition of ServiceMonitor.
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
#: Schemas of every kind of Kubernetes, in the form that kubeconform reads.
KUBERNETES_SCHEMAS = "kubernetes-validate==1.37.0"
#: Types of spark-operator's resources.
SPARK_OPERATOR_TYPES = "kubeflow-spark-api==2.4.0"
#: Types of the resources in a Databricks bundle.
DATABRICKS_TYPES = "databricks-bundles==1.22.1"


def documents(text: str) -> list[dict[str, Any]]:
    """The documents of a YAML text."""
    return [document for document in yaml.safe_load_all(text) if document is not None]


@cache
def go_program(name: str, package: str, progress: Progress | None = None) -> Path:
    """The program `name` of a Go package, built once. Skips the test if Go is not installed."""

    def build(folder: Path) -> None:
        if progress:
            progress(f"building {name} (about a minute, once)")
        _run([_go(), "install", package], {"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"})

    return _made(f"{name}-{package.rpartition('@')[2]}", build) / name


@cache
def go_module(module: str) -> Path:
    """Folder with the files of a Go module. Skips the test if Go is not installed."""
    found: str = json.loads(_run([_go(), "mod", "download", "-json", module], {}))["Dir"]
    return Path(found)


@cache
def python_packages(*requirements: str) -> Path:
    """Folder with Python packages that our own environment does not have."""

    def install(folder: Path) -> None:
        _run([_uv(), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(folder), *requirements], {})

    return _made(_joined(requirements), install)


@cache
def python_environment(*requirements: str) -> Path:
    """A virtual environment with packages that cannot be in ours: they pin other versions."""

    def create(folder: Path) -> None:
        _run([_uv(), "venv", "--quiet", "--relocatable", "--python", sys.executable, "--clear", str(folder)], {})
        _run([_uv(), "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *requirements], {})

    return _made(f"environment-{_joined(requirements)}", create)


def _joined(requirements: Sequence[str]) -> str:
    return "_".join(requirement.replace("==", "-") for requirement in requirements)


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


def _made(name: str, make: Callable[[Path], None]) -> Path:
    folder = cache_root() / _KIND / name
    if not folder.exists():
        partial = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            make(partial)
            if not folder.exists():
                partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd="/", env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-2000:]}"
    return done.stdout
