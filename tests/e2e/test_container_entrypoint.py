"""The entry point of the image: our command, and the driver that Spark on Kubernetes starts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from debian_packages import tini
from deployment_tools import DEPLOY
from patience import LIMIT_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.debian]

FOLDER = DEPLOY / "container"


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of the entry point with the variables of the image."""
    programs = [str(Path(sys.executable).parent), str(tini().parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(programs),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1",
        # tini is not process 1 here
        "TINI_SUBREAPER": "1",
    }
    command = [str(FOLDER / "entrypoint.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment, check=False)


def test_arguments_are_those_of_our_command() -> None:
    done = started("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "grouplake")


def test_a_driver_runs_our_command(tmp_path: Path) -> None:
    """Spark on Kubernetes adds the master, the driver's host and the application file to the arguments."""
    assert started("example", str(tmp_path / "log")).returncode == 0
    (tmp_path / "conf.toml").write_text('[spark]\nmaster = ""\n[job]\ndriver_records = 0\n')
    job = ["run", "--source", f"segments:{tmp_path}/log", "--tables", f"{tmp_path}/tables", "--conf", f"{tmp_path}/conf.toml"]
    spark = ["--master", "local[2]", "--conf", "spark.driver.host=127.0.0.1"]
    done = started("driver", *spark, str(FOLDER / "grouplake_job.py"), *job)
    assert done.returncode == 0, done.stderr[-3000:]
    # spark-submit prints both outputs of Python on its standard output
    assert re.search(r"^batch 0: 190 records read", done.stdout, re.MULTILINE)
    assert started("check", "--tables", f"{tmp_path}/tables").returncode == 0
