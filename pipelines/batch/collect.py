"""Collection of the packed change rows of a batch in the driver, if they fit."""

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

#: Text in the error of Spark's scheduler for results that exceed the limit of the driver.
_TOO_LARGE = "spark.driver.maxResultSize"

#: The JVM builds each Arrow batch in memory. With its default of 10,000 packed rows, 1.3 GB, a heap of 1 GiB is too small.
_ROWS_PER_BATCH = ("spark.sql.execution.arrow.maxRecordsPerBatch", "64")


def collected(packed_rows: DataFrame) -> pa.Table:
    """Collect the rows with one Spark job."""
    name, value = _ROWS_PER_BATCH
    settings = packed_rows.sparkSession.conf
    before = settings.get(name)
    settings.set(name, value)
    try:
        return packed_rows.toArrow()
    finally:
        settings.set(name, str(before))


def collected_if_small(packed_rows: DataFrame) -> pa.Table | None:
    """Collect the rows with one Spark job; None if they exceed `spark.driver.maxResultSize`."""
    try:
        return collected(packed_rows)
    except (PySparkException, Py4JError) as error:
        if _TOO_LARGE in str(error):
            return None
        raise
