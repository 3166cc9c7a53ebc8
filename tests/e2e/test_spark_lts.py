"""The wheel beside PySpark 3.5 and Delta 3.3, as in runtimes with long-term support: `grouplake.register` reads all tables."""

import json
from pathlib import Path

import pytest
from reader_environments import environment
from two_clusters import two_clusters
from wheel_environments import built_distributions

from pipelines.runtime.cache.jars import resolved_jars

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.deployment, pytest.mark.spark]

#: Of Databricks 16.4 LTS, with the newest PySpark and delta-spark of these lines.
RUNTIME = ("pyspark==3.5.9", "delta-spark==3.3.2", "numpy==1.26.4", "pyarrow==15.0.2", "pandas==1.5.3")
DELTA_OF_RUNTIME = ("delta-spark-3.3.2", ("io.delta:delta-spark_2.12:3.3.2",))
#: Registers the tables, and prints for each name whether Spark has the rows of the Python package.
_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import grouplake

folder, jars = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)

def plain(value):
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else str(value).removesuffix("+00:00")

def text(rows):
    # maps have no order
    return sorted(json.dumps(row, default=plain, sort_keys=True) for row in rows)

found = {}
for as_of in (None, 0):
    tables = grouplake.open(folder, as_of=as_of)
    for name in grouplake.register(spark, folder, as_of=as_of):
        rows = [row.asDict(recursive=True) for row in spark.table(name).collect()]
        found[f"{name}@{as_of}"] = (len(rows), text(rows) == text(tables.table(name)))
print(json.dumps([spark.version, found]))
"""


def test_registered_tables_have_our_rows_in_spark_3_5(tmp_path: Path) -> None:
    root = two_clusters(tmp_path)["east"]
    wheel = built_distributions(tmp_path / "dist").wheel
    reader = environment(tmp_path / "environment", wheel, *RUNTIME)
    jars = ",".join(str(path) for path in sorted(resolved_jars(*DELTA_OF_RUNTIME).glob("*.jar")))
    utc = reader.variables | {"TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
    version, found = json.loads(reader.python(_PROGRAM, root, jars, env=utc).splitlines()[-1])
    assert version.startswith("3.5.")
    assert len(found) > 60
    assert {name: rows for name, (rows, is_equal) in found.items() if not is_equal} == {}
    assert sum(rows for rows, _ in found.values()) > 20
    # the installation left the versions of the runtime alone
    versions = reader.python("import numpy, pandas, pyarrow, pyspark; print(numpy.__version__, pyarrow.__version__)")
    assert versions.split() == ["1.26.4", "15.0.2"]
