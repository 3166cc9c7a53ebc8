"""The change rows of a batch in the driver, if it can hold them."""

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

#: What Spark's scheduler says when it ends a job whose results outgrow the driver.
_TOO_LARGE = "spark.driver.maxResultSize"


def collected(changed: DataFrame) -> pa.Table | None:
    """All rows of `changed`, by one Spark job; None when they are more than `spark.driver.maxResultSize`.

    How many rows there will be is known only when the log has been read: a compacted log of a billion offsets may hold a thousand
    keys. So the few rows of nearly every batch are not written to a cache first, and a batch that is too large is read again.
    """
    try:
        return changed.toArrow()
    except (PySparkException, Py4JError) as error:
        if _TOO_LARGE in str(error):
            return None
        raise
