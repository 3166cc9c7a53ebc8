"""Collection of the change rows of a batch in the driver, if they fit."""

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

#: Text in the error of Spark's scheduler for results that exceed the limit of the driver.
_TOO_LARGE = "spark.driver.maxResultSize"


def collected(changed: DataFrame) -> pa.Table | None:
    """Collect all rows of `changed` with one Spark job; None if they exceed `spark.driver.maxResultSize`.

    The number of rows is known only after reading: a compacted log of a billion offsets may have a thousand keys. So batches are
    not cached first, because nearly all have few rows; a batch that is too large is read again.
    """
    try:
        return changed.toArrow()
    except (PySparkException, Py4JError) as error:
        if _TOO_LARGE in str(error):
            return None
        raise
