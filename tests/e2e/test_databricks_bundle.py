"""The Databricks bundle follows the published types of its resources, and starts our command."""

import json
import os
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml
from deployment_tools import DATABRICKS_TYPES, DEPLOY, ROOT, python_packages
from patience import PATIENCE_SECONDS

from pipelines.cli.parser import parser

pytestmark = [pytest.mark.slow, pytest.mark.deployment]

#: Reads jobs as JSON; prints the first thing that their types refuse, or nothing.
_CHECK = """
import json, sys
from databricks.bundles.jobs import Job
try:
    for job in json.load(sys.stdin).values():
        Job.from_dict(job)
except ValueError as error:
    print(error)
"""


def bundle() -> dict[str, Any]:
    """The bundle."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "databricks" / "databricks.yml").read_text(encoding="utf-8"))
    return found


def refused(jobs: dict[str, Any]) -> str:
    """What the types of Databricks refuse in these jobs."""
    environment = {**os.environ, "PYTHONPATH": str(python_packages(DATABRICKS_TYPES))}
    command = [sys.executable, "-c", _CHECK]
    done = subprocess.run(
        command, input=json.dumps(jobs), capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment, check=True
    )
    return done.stdout.strip()


def test_jobs_follow_their_types() -> None:
    assert refused(bundle()["resources"]["jobs"]) == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("max_concurrent_runs", "max_concurent_runs"),
        ("entry_point", "entrypoint"),
        ("num_workers: 0", "num_workers: none"),
        ("quartz_cron_expression", "cron_expression"),
    ],
)
def test_a_mistake_is_found(right: str, wrong: str) -> None:
    text = (DEPLOY / "databricks" / "databricks.yml").read_text(encoding="utf-8")
    assert right in text
    assert refused(yaml.safe_load(text.replace(right, wrong))["resources"]["jobs"]) != ""


def test_tasks_start_our_commands_one_at_a_time() -> None:
    for job in bundle()["resources"]["jobs"].values():
        assert job["max_concurrent_runs"] == 1
        (task,) = job["tasks"]
        wheel = task["python_wheel_task"]
        text = "\n".join(wheel["parameters"])
        text = text.replace("${var.source}", "kafka://broker1:9093/__consumer_offsets").replace("${var.tables}", "/data/main")
        assert parser().parse_args(text.splitlines()).command is not None
        assert (wheel["package_name"], wheel["entry_point"]) == ("grouplake", "grouplake")


def test_a_task_has_the_packages_of_the_job_that_the_runtime_lacks() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    of_the_runtime = ("pyspark", "delta-spark", "pandas", "pyarrow", "numpy")
    needed = {line for line in extras["job"] if not line.startswith(of_the_runtime)}
    for job in bundle()["resources"]["jobs"].values():
        (task,) = job["tasks"]
        assert {each["pypi"]["package"] for each in task["libraries"] if "pypi" in each} == needed


def test_every_variable_that_is_used_is_declared() -> None:
    text = (DEPLOY / "databricks" / "databricks.yml").read_text(encoding="utf-8")
    used = {part.partition("}")[0] for part in text.split("${var.")[1:]}
    assert used == set(bundle()["variables"])
