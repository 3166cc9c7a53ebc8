"""A local session that records its classes: batches by both writers, and every view. The arguments are additional jars."""

import sys
import tempfile
from pathlib import Path

import genuine
from jobs import run_job

from pipelines.job.spark.session import start_session
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import print_progress
from pipelines.tables import definitions


def main() -> None:
    """Run the session, and let its JVM write the archive."""
    settings = {**load_configuration(None).spark, "master": "local[2]"}
    session = start_session(settings, print_progress, tuple(sys.argv[1:]), records_classes=True)
    with tempfile.TemporaryDirectory(prefix="recorded-spark-run-") as folder:
        log = genuine.segments_dir("4.1.1", Path(folder) / "log")
        for bulk_rows in (0, 1_000_000):
            run_job(f"segments:{log}", f"{folder}/tables-{bulk_rows}", bulk_rows=bulk_rows, max_records=60)
        for name in definitions.WRITE_ORDER:
            rows = session.spark.read.format("delta").load(f"{folder}/tables-0/{name}")
            rows.createOrReplaceTempView(name)
        for name in definitions.VIEWS:
            session.spark.sql(definitions.spark_view_sql(name)).createOrReplaceTempView(name)
            session.spark.table(name).toArrow()
    session.finish(print_progress)


if __name__ == "__main__":
    main()
