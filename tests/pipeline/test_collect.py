"""Change rows collected in the driver, and too many for it."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipelines.batch.apply_in_spark import collected_if_small

pytestmark = pytest.mark.spark


def test_rows_that_outgrow_the_driver_are_not_collected(spark: SparkSession) -> None:
    settings = spark.sparkContext._jsc.sc().conf()
    many = spark.range(200_000, numPartitions=4)
    rows = collected_if_small(many)
    assert rows is not None
    assert rows.num_rows == 200_000
    assert max(len(batch) for batch in rows.to_batches()) == 64
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "10000"
    settings.set("spark.driver.maxResultSize", "100k")
    try:
        assert collected_if_small(many) is None
    finally:
        settings.set("spark.driver.maxResultSize", "1g")


def test_other_errors_are_raised(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        collected_if_small(spark.sql("SELECT 1 / 0"))
