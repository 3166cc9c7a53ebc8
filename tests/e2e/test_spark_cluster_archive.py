"""`spark-submit` in client mode from a packed environment in an empty folder, with the commands of docs/deploy-cluster.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from checked_commands import checked
from cluster_runs import ClusterRuns
from deployment_tools import ROOT
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from spark_cluster import spark_cluster
from wheel_environments import UV, built_distributions, install

from pipelines.job.spark.session import DELTA
from pipelines.runtime.cache.jars import resolved_jars, without_spark_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.deployment]

PAGE = ROOT / "docs" / "deploy-cluster.md"
_CONF = """[job]
bulk_rows = 1
[lag]
interval_seconds = 0
[spark]
master = ""
delta_jars = "provided"
[spark.conf]
"spark.executor.memory" = "512m"
"""


def commands(after: str) -> list[str]:
    """The lines of the first shell block after a line of the page."""
    block = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8").partition(after)[2], re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def shell(lines: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Output of commands that must succeed."""
    ended = subprocess.run(
        ["bash", "-euc", "\n".join(lines)],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """An environment without this one's packages, in which `spark-submit` is that of the cluster."""
    ours = ("PYTHON", "PYSPARK", "SPARK", "NUMBA")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    spark = Path(pyspark.__file__).parent
    return inherited | {"SPARK_HOME": str(spark), "PATH": f"{spark / 'bin'}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> Path:
    """The folder with `environment.tar.gz` and `run.py`, packed with the commands of the page."""
    folder = tmp_path_factory.mktemp("pack")
    create, install_wheel, *rest = commands("Pack, once per version")
    assert create == "python3 -m venv environment"
    assert install_wheel == 'environment/bin/pip install "$(ls grouplake-*.whl)[job]"'
    # the same with uv, whose cache has the packages
    checked(UV, "venv", "--quiet", "--python", sys.executable, folder / "environment")
    install(built_distributions(tmp_path_factory.mktemp("dist")).wheel, folder / "environment", "job")
    shell(rest, folder, variables)
    return folder


def test_spark_submit_in_an_empty_folder(packed: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    submit = tmp_path / "submit"
    submit.mkdir()
    for name in ("environment.tar.gz", "run.py"):
        (submit / name).symlink_to(packed / name)
    jars = without_spark_jars(resolved_jars(*DELTA))
    with spark_cluster(tmp_path / "cluster") as cluster:
        runs = ClusterRuns(tmp_path, cluster)
        runs.grow()
        (submit / "cluster.toml").write_text(_CONF)
        given = {"MASTER": cluster.address, "SOURCE": runs.source, "TABLES": str(runs.tables), "SPARK_LOCAL_IP": "127.0.0.1"}
        *lines, last = commands("Run, in any folder")
        # the reference ends with an expiry sweep
        lines.append(f"{last} --expiry apply --now {runs.now_ms}")
        output = shell(lines, submit, {**variables, **given, "DELTA_JARS": ",".join(map(str, jars))})
        environments = [path for worker in cluster.workers for path in worker.work.glob("app-*/*/environment")]
    assert "checking 2 executors" in output
    assert len(environments) == 2
    for environment in environments:
        # executors may compile functions for further types, but none of those in the archive again
        assert compiled(packed / "environment").items() <= compiled(environment).items()
    runs.expect_same_tables()


def compiled(environment: Path) -> dict[str, int]:
    """Files with compiled functions, and when they were written."""
    return {str(path.relative_to(environment)): path.stat().st_mtime_ns for path in environment.rglob("*.nbc")}


def test_a_relative_python_that_the_driver_lacks(tmp_path: Path, variables: dict[str, str]) -> None:
    conf = tmp_path / "cluster.toml"
    conf.write_text('[spark]\nmaster = "local-cluster[1,1,1024]"\n')
    source = ["--source", f"jsonl:{ROOT / 'tests' / 'data' / 'kafka-4.1.1.records.jsonl'}"]
    command = [str(Path(sys.executable).with_name("grouplake")), "run", *source, "--tables", "tables", "--conf", str(conf)]
    python = {"PYSPARK_PYTHON": "./environment/bin/python"}
    ended = subprocess.run(
        command, cwd=tmp_path, env={**variables, **python}, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert ended.returncode == 2
    assert "unpack the archive of the executors there too, or: ln -s" in ended.stderr
