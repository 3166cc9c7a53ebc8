"""Readers of Delta in environments of their own: what each installs, and the program that reads tables with it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import canonical_rows
from reader_environments import environment


@dataclass(frozen=True)
class DeltaReader:
    """A reader with its versions.

    `program` defines `rows(location, version)`: all rows of a table, as dicts; version None is the newest one.
    """

    name: str
    requirements: tuple[str, ...]
    program: str

    @property
    def label(self) -> str:
        """Name and versions."""
        return f"{self.name}: {', '.join(self.requirements)}"


@dataclass(frozen=True)
class Reading:
    """One table at one version, and the key of its result."""

    key: str
    location: str
    version: int | None


_READ = """
import sys

found = {}
for key, location, version in json.loads(open(sys.argv[1]).read()):
    try:
        found[key] = digest(rows(location, version))
    except BaseException as error:
        found[key] = f"{type(error).__name__}: {error}"
print()
print(json.dumps(found))
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
    DeltaReader("Dask", ("dask-deltatable==0.4.0", "dask[dataframe]==2026.8.0"), _DASK),
    DeltaReader("Dask, `convert-string: False`", ("dask-deltatable==0.4.0", "dask[dataframe]==2026.8.0"), _DASK_WITHOUT_STRINGS),
)


def read_with(reader: DeltaReader, folder: Path, readings: Sequence[Reading]) -> dict[str, Any]:
    """Key → number of rows and digest, or an error."""
    requests = [[each.key, each.location, each.version] for each in readings]
    found: dict[str, Any] = run_with(reader, folder, _READ, requests)
    return found


def run_with(reader: DeltaReader, folder: Path, program: str, requests: object) -> Any:
    """What `program` prints last, as JSON. It follows the program of the reader, has `digest` of `canonical_rows`, and its first
    argument is a file with the requests. `folder` is new and gets the environment.
    """
    folder.mkdir()
    file = folder / "requests.json"
    file.write_text(json.dumps(requests), encoding="utf-8")
    installed = environment(folder / "environment", *reader.requirements)
    text = Path(canonical_rows.__file__).read_text(encoding="utf-8") + reader.program + program
    return json.loads(installed.python(text, str(file), env=installed.variables | {"TZ": "UTC"}).splitlines()[-1])
