"""Readers of Delta in environments of their own: what each installs, and the program that reads tables with it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import canonical_rows
from reader_environments import environment

from pipelines.runtime.cache.jars import resolved_jars


@dataclass(frozen=True)
class DeltaReader:
    """A reader with its versions, and the Maven packages that its program finds in the variable READER_JARS.

    `program` defines `rows(location, version)`: all rows of a table, as dicts; version None is the newest one. If `has_streams`,
    it also defines `new_rows(location, checkpoint)`: those that a stream delivers since the call before.
    """

    name: str
    requirements: tuple[str, ...]
    program: str
    packages: tuple[str, ...] = ()
    has_streams: bool = False

    @property
    def versions(self) -> list[str]:
        """Versions as they are shown."""
        artifacts = (package.split(":")[1:] for package in self.packages)
        jars = [f"{artifact.rpartition('_')[0]} {version}" for artifact, version in artifacts]
        return [*(each.replace("==", " ") for each in self.requirements), *jars]

    @property
    def label(self) -> str:
        """Name and versions."""
        return f"{self.name}: {', '.join((*self.requirements, *self.packages))}"


@dataclass(frozen=True)
class Reading:
    """One table at one version, and the key of its result."""

    key: str
    location: str
    version: int | None


#: It ends without the end of the interpreter, at which threads of old releases of delta-rs sometimes abort it.
_READ = """
import os, sys

found = {}
for key, location, version in json.loads(open(sys.argv[1]).read()):
    try:
        found[key] = digest(rows(location, version))
    except BaseException as error:
        found[key] = f"{type(error).__name__}: {error}"
print()
print(json.dumps(found), flush=True)
os._exit(0)
"""

#: `link` is the folder of the tables before they grow, then that afterwards.
_FOLLOW = """
import os, sys, tempfile

folder = tempfile.mkdtemp()
link, rows, errors = f"{folder}/tables", {}, {}
roots, names = json.loads(open(sys.argv[1]).read())
for root in roots:
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(root, link)
    for name in names:
        try:
            rows.setdefault(name, []).extend(new_rows(f"{link}/{name}", f"{folder}/_{name}"))
        except BaseException as error:
            errors[name] = f"{type(error).__name__}: {error}"
print()
print(json.dumps({name: errors.get(name) or digest(rows[name]) for name in names}))
"""

_DELTA_RS = """
from deltalake import DeltaTable

def rows(location, version):
    return DeltaTable(location, version=version).to_pyarrow_table().to_pylist()
"""

_PANDAS = """
from deltalake import DeltaTable

def rows(location, version):
    return DeltaTable(location, version=version).to_pandas().to_dict("records")
"""

_POLARS = """
import polars

def rows(location, version):
    return polars.read_delta(location, version=version).to_dicts()
"""

_POLARS_LAZY = """
import polars

def rows(location, version):
    return polars.scan_delta(location, version=version).collect().to_dicts()
"""

#: The extension from a package: the server of DuckDB may be out of reach.
_EXTENSION = """
import pathlib
import duckdb_extension_delta

(extension,) = pathlib.Path(duckdb_extension_delta.__file__).parent.glob("extensions/*/delta.duckdb_extension")
"""
_DUCKDB_DELTA = f"""{_EXTENSION}
import duckdb

connection = duckdb.connect()
connection.execute(f"LOAD '{{extension}}'")

def rows(location, version):
    option = "" if version is None else f", version => {{version}}"
    return connection.sql(f"SELECT * FROM delta_scan('{{location}}'{{option}})").to_arrow_table().to_pylist()
"""

_DUCKDB_ARROW = """
import duckdb
from deltalake import DeltaTable

connection = duckdb.connect()

def rows(location, version):
    dataset = DeltaTable(location, version=version).to_pyarrow_dataset()
    return connection.sql("SELECT * FROM dataset").to_arrow_table().to_pylist()
"""

_IBIS = f"""{_EXTENSION}
import tempfile
import ibis

connection = ibis.duckdb.connect(extension_directory=tempfile.mkdtemp())
connection.raw_sql(f"INSTALL '{{extension}}'")

def rows(location, version):
    options = {{}} if version is None else {{"version": version}}
    return connection.read_delta(location, **options).to_pyarrow().to_pylist()
"""

_DAFT = """
import daft

def rows(location, version):
    return daft.read_deltalake(location, version=version).to_pylist()
"""

_DATAFUSION = """
from datafusion import SessionContext
from deltalake import DeltaTable

def rows(location, version):
    context = SessionContext()
    context.register_dataset("t", DeltaTable(location, version=version).to_pyarrow_dataset())
    return context.sql("SELECT * FROM t").to_arrow_table().to_pylist()
"""

_DASK = """
import dask_deltatable

def rows(location, version):
    return dask_deltatable.read_deltalake(location, version=version).compute().to_dict("records")
"""
_DASK_WITHOUT_STRINGS = f'import dask\ndask.config.set({{"dataframe.convert-string": False}})\n{_DASK}'

_SPARK = """
import os
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", os.environ["READER_JARS"])
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.databricks.delta.snapshotPartitions", "2")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)

def plain(frame):
    return [row.asDict(recursive=True) for row in frame.collect()]

def rows(location, version):
    reader = spark.read.format("delta")
    return plain((reader if version is None else reader.option("versionAsOf", version)).load(location))

def new_rows(location, checkpoint):
    found = []
    stream = spark.readStream.format("delta").option("ignoreDeletes", True).load(location).writeStream
    stream = stream.foreachBatch(lambda frame, _: found.extend(plain(frame))).option("checkpointLocation", checkpoint)
    stream.trigger(availableNow=True).start().awaitTermination()
    return found
"""

#: DuckDB with its delta extension, in the newest version for which there is a package of the extension.
DUCKDB = DeltaReader("DuckDB `delta_scan`", ("duckdb==1.5.5", "duckdb-extension-delta==1.5.5", "pyarrow==26.0.1"), _DUCKDB_DELTA)
READERS = (
    DeltaReader("delta-rs", ("deltalake==0.15.3", "pyarrow==14.0.2", "numpy<2"), _DELTA_RS),
    DeltaReader("delta-rs", ("deltalake==0.25.5", "pyarrow==18.1.0"), _DELTA_RS),
    DeltaReader("delta-rs", ("deltalake==1.6.6", "pyarrow==26.0.1"), _DELTA_RS),
    DeltaReader("pandas", ("pandas==2.3.3", "deltalake==1.6.6", "pyarrow==26.0.1"), _PANDAS),
    DeltaReader("Polars", ("polars==0.20.3", "deltalake==0.15.3", "pyarrow==14.0.2", "numpy<2"), _POLARS),
    DeltaReader("Polars", ("polars==0.20.31", "deltalake==0.25.5"), _POLARS),
    DeltaReader("Polars", ("polars==2.1.0", "deltalake==1.6.6"), _POLARS),
    DeltaReader("Polars `scan_delta`", ("polars==0.20.31", "deltalake==0.25.5"), _POLARS_LAZY),
    DeltaReader("Polars `scan_delta`", ("polars==2.1.0", "deltalake==1.6.6"), _POLARS_LAZY),
    DUCKDB,
    DeltaReader("DuckDB over Arrow", ("duckdb==2.0.0", "deltalake==1.6.6", "pyarrow==26.0.1"), _DUCKDB_ARROW),
    DeltaReader("Ibis", ("ibis-framework[duckdb]==12.0.0", "duckdb==1.5.5", "duckdb-extension-delta==1.5.5"), _IBIS),
    DeltaReader("Daft", ("daft[deltalake]==0.7.26",), _DAFT),
    DeltaReader("DataFusion", ("datafusion==55.0.0", "deltalake==1.6.6", "pyarrow==26.0.1"), _DATAFUSION),
    DeltaReader("Spark", ("pyspark==3.4.4",), _SPARK, ("io.delta:delta-core_2.12:2.4.0",), has_streams=True),
    DeltaReader("Dask", ("dask-deltatable==0.4.0", "dask[dataframe]==2026.8.0"), _DASK),
    DeltaReader("Dask, `convert-string: False`", ("dask-deltatable==0.4.0", "dask[dataframe]==2026.8.0"), _DASK_WITHOUT_STRINGS),
)


class InstalledReader:
    """A reader in an environment of its own, in `folder`, which is new."""

    def __init__(self, reader: DeltaReader, folder: Path) -> None:
        folder.mkdir()
        self._reader, self._folder = reader, folder
        self._environment = environment(folder / "environment", *reader.requirements)
        self._variables = {**self._environment.variables, "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
        if reader.packages:
            name = "-".join(reader.packages[0].split(":")[1:])
            jars = sorted(resolved_jars(name, reader.packages).glob("*.jar"))
            self._variables["READER_JARS"] = ",".join(str(path) for path in jars)

    def read(self, readings: Sequence[Reading]) -> dict[str, Any]:
        """Key → number of rows and digest, or an error."""
        found: dict[str, Any] = self.run(_READ, [[each.key, each.location, each.version] for each in readings])
        return found

    def follow(self, roots: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        """Table → number of rows that a stream delivers and their digest, or an error.

        `roots` are the folder of the tables, and that in which they have grown.
        """
        found: dict[str, Any] = self.run(_FOLLOW, [roots, names])
        return found

    def run(self, program: str, requests: object) -> Any:
        """What `program` prints last, as JSON. It follows the program of the reader, has `digest` of `canonical_rows`, and its
        first argument is a file with the requests.
        """
        file = self._folder / "requests.json"
        file.write_text(json.dumps(requests), encoding="utf-8")
        text = Path(canonical_rows.__file__).read_text(encoding="utf-8") + self._reader.program + program
        return json.loads(self._environment.python(text, str(file), env=self._variables).splitlines()[-1])
