"""Airflow itself loads the DAG and runs its command, in an environment of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deployment_tools import AIRFLOW, DEPLOY, python_environment
from patience import LIMIT_SECONDS, PATIENCE_SECONDS

from pipelines.cli.parser import parser

pytestmark = [pytest.mark.slow, pytest.mark.deployment]

#: Loads the folder of DAGs, and prints what tests compare.
_LOAD = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print(json.dumps({
    "errors": bag.import_errors,
    "dags": {
        dag.dag_id: {
            "catchup": dag.catchup,
            "max_active_runs": dag.max_active_runs,
            "tasks": {task.task_id: [task.retries, task.bash_command, task.env] for task in dag.tasks},
        }
        for dag in bag.dags.values()
    },
}))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


def environment(home: Path, **variables: str) -> dict[str, str]:
    """Settings of an Airflow without examples, with its files in `home`."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DEPLOY / "airflow"),
        **variables,
    }


def airflow(home: Path, *arguments: str, **variables: str) -> str:
    """Standard output of a program in Airflow's environment."""
    python = python_environment(AIRFLOW) / "bin"
    command = [str(python / arguments[0]), *arguments[1:]]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=environment(home, **variables), cwd=home
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def loaded(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(airflow(home, "python", "-c", _LOAD, str(DEPLOY / "airflow")).splitlines()[-1])
    return found


def test_airflow_loads_the_dag(loaded: dict[str, Any]) -> None:
    assert loaded["errors"] == {}
    assert set(loaded["dags"]) == {"grouplake_run"}


def test_runs_do_not_overlap_and_are_not_repeated(loaded: dict[str, Any]) -> None:
    for dag in loaded["dags"].values():
        assert (dag["catchup"], dag["max_active_runs"]) == (False, 1)
    assert loaded["dags"]["grouplake_run"]["tasks"]["run"][0] == 0


def test_commands_are_ours_and_have_no_secret(loaded: dict[str, Any]) -> None:
    for dag in loaded["dags"].values():
        for _, command, variables in dag["tasks"].values():
            words = command.replace("'", "").replace("{{ ", "").replace(" }}", "").split()
            assert words[:2] == ["exec", "var.value.grouplake_command"]
            assert parser().parse_args(words[2:]).command is not None
            assert all(value.startswith("{{ conn.") for value in variables.values())


def test_a_run_of_the_dag_makes_tables(home: Path, tmp_path: Path) -> None:
    grouplake = str(Path(sys.executable).with_name("grouplake"))
    subprocess.run([grouplake, "example", str(tmp_path / "log")], check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    tables = tmp_path / "tables"
    (tmp_path / "conf.toml").write_text('[kafka]\nsasl_password = "env:KAFKA_PASSWORD"\n')
    variables = {
        "AIRFLOW_VAR_GROUPLAKE_COMMAND": grouplake,
        "AIRFLOW_VAR_GROUPLAKE_SOURCE": f"segments:{tmp_path / 'log'}",
        "AIRFLOW_VAR_GROUPLAKE_TABLES": str(tables),
        "AIRFLOW_VAR_GROUPLAKE_CONF": str(tmp_path / "conf.toml"),
        "AIRFLOW_CONN_GROUPLAKE_KAFKA": "generic://reader:hidden@",
    }
    airflow(home, "airflow", "db", "migrate")
    shown = airflow(home, "airflow", "dags", "test", "grouplake_run", **variables)
    assert "hidden" not in shown
    checked = subprocess.run(
        [grouplake, "check", "--tables", str(tables)], capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert checked.returncode == 0
