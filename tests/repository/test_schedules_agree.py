"""The schedules of `deploy`: a run states the interval of its scheduler, and ends by itself before the deadline."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from systemd_units import settings, started_command

from coordinator_core.health.durations import parse_duration_ms
from pipelines.cli.parser import parser

DEPLOY = Path(__file__).parents[2] / "deploy"
HUNG_SECONDS = tomllib.loads((DEPLOY.parent / "conf" / "local.toml").read_text(encoding="utf-8"))["job"]["hung_seconds"]
_MINUTES = re.compile(r"(?:0 )?\*/(\d+) \* \* \* [*?]")


def resource(path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / path).read_text(encoding="utf-8"))
    return found


def dag() -> str:
    return (DEPLOY / "airflow" / "grouplake_dag.py").read_text(encoding="utf-8")


def timedelta_seconds(keyword: str) -> int:
    """Seconds of the argument `keyword=timedelta(UNIT=N)` in the DAG."""
    units = {"minutes": 60, "hours": 3_600}
    calls = [each for each in ast.walk(ast.parse(dag())) if isinstance(each, ast.keyword) and each.arg == keyword]
    (argument,) = [each.value for each in calls]
    assert isinstance(argument, ast.Call)
    (unit,) = argument.keywords
    assert unit.arg is not None
    return units[unit.arg] * int(ast.literal_eval(unit.value))


def schedules() -> dict[str, tuple[int, list[str], int | None]]:
    """Name → seconds between two runs, arguments of the command, and seconds until the scheduler ends a run."""
    timer, unit = settings("grouplake-run@.timer"), settings("grouplake-run@.service")
    cron = resource("kubernetes/overlays/cron/run.yaml")["spec"]
    job = cron["jobTemplate"]["spec"]
    spark = resource("kubernetes/overlays/spark-operator/run.yaml")["spec"]
    bricks = resource("databricks/databricks.yml")["resources"]["jobs"]["run"]
    (task,) = bricks["tasks"]
    command = re.findall(r"--trigger available-now [^\"]+", dag())[0].split()
    return {
        "systemd": (
            seconds(timer["OnUnitInactiveSec"]),
            started_command("grouplake-run@.service"),
            seconds(unit["TimeoutStartSec"]),
        ),
        "cron": (of_cron(cron["schedule"]), job["template"]["spec"]["containers"][0]["args"], job["activeDeadlineSeconds"]),
        # spark-operator has no deadline
        "spark-operator": (of_cron(spark["schedule"]), spark["template"]["arguments"], None),
        "databricks": (
            of_cron(bricks["schedule"]["quartz_cron_expression"]),
            task["python_wheel_task"]["parameters"],
            task["timeout_seconds"],
        ),
        "airflow": (
            timedelta_seconds("schedule"),
            ["run", "--source", "s", "--tables", "t", *command],
            timedelta_seconds("execution_timeout"),
        ),
    }


def seconds(text: str) -> int:
    """A duration of systemd, such as `5min`."""
    return parse_duration_ms(text.replace("min", "m")) // 1_000


def of_cron(text: str) -> int:
    found = _MINUTES.fullmatch(text)
    assert found is not None, text
    return int(found[1]) * 60


@pytest.mark.parametrize("name", schedules())
def test_a_run_states_the_interval_of_its_scheduler(name: str) -> None:
    every, arguments, deadline = schedules()[name]
    options = parser().parse_args(arguments)
    assert (options.trigger, options.schedule) == ("available-now", every)
    # a run that hangs ends by itself, with its reason, before it is ended from outside
    assert deadline is None or deadline > HUNG_SECONDS + 60


def test_a_start_of_the_job_has_a_deadline_too() -> None:
    assert seconds(settings("grouplake-job@.service")["TimeoutStartSec"]) > HUNG_SECONDS


def test_the_log_of_the_composed_broker_lives_as_long_as_the_tables() -> None:
    """With a new log the job would refuse the tables of the old one after `down` and `up`."""
    compose = resource("compose/compose.yaml")
    services = compose["services"]
    data = services["kafka"]["environment"]["KAFKA_LOG_DIRS"]
    assert f"kafka:{data}" in services["kafka"]["volumes"]
    kept = {volume.split(":")[0] for name in ("kafka", "job") for volume in services[name]["volumes"]}
    assert kept == {"kafka", "tables"} <= compose["volumes"].keys()
    assert all(compose["volumes"][name] is None for name in kept)
