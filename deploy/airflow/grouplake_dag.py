"""Scheduled runs of one cluster, with maintenance once a day, for Airflow 3.

The commands run on the worker, which needs Grouplake in an environment of its own: Airflow and Grouplake pin other versions of
the same packages. Variables of Airflow: grouplake_command (/opt/grouplake/bin/grouplake), grouplake_source
(kafka://broker1:9092/__consumer_offsets), grouplake_tables, grouplake_conf (a file, or the profile "kafka"). The connection
grouplake_kafka has user name and password.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

TABLES = "--tables '{{ var.value.grouplake_tables }}' --conf '{{ var.value.grouplake_conf }}'"
SECRETS = {
    "KAFKA_USERNAME": "{{ conn.grouplake_kafka.login }}",
    "KAFKA_PASSWORD": "{{ conn.grouplake_kafka.password }}",
}

with DAG(
    "grouplake_run",
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    # a run reads everything since the last one
    catchup=False,
    # one writer per folder of tables
    max_active_runs=1,
    tags=["grouplake"],
):
    BashOperator(
        task_id="run",
        bash_command=(
            "exec '{{ var.value.grouplake_command }}' run --source '{{ var.value.grouplake_source }}' "
            f"{TABLES} --trigger available-now --schedule 5m --maintain-every 1d"
        ),
        env=SECRETS,
        append_env=True,
        # the next schedule is the retry
        retries=0,
        # above job.hung_seconds, after which a run ends by itself. Raise both if a first load takes longer
        execution_timeout=timedelta(hours=1),
    )
