"""Program that reports what an executor finds: its Python, the packages of a task, and files that it must share.

The text of this file is run with `python -c` on every executor (`pipelines.job.spark.executors`). It may meet any Python 3 and an
environment without our packages, so it begins with the standard library of Python 3.6. The argument is a JSON object of path →
whether the executors write to it; the result is one marked line of JSON on standard output.
"""

import json
import os
import platform
import sys

MARK = "grouplake-executor: "


def package_report() -> "dict[str, str]":
    """Versions of our packages, or the error of an import."""
    report = {}
    try:
        from pipelines.runtime.version import version_text

        report["grouplake"] = version_text()
        # the modules of a task: every native package is loaded and used, and the first task finds the functions compiled
        import coordinator_core.sources.kafka  # noqa: F401
        import pipelines.source.data_source  # noqa: F401
        from pipelines.source.warm_up import load_kernels

        load_kernels()
        import pyspark

        report["pyspark"] = pyspark.__version__
    except Exception as error:
        report["error"] = f"{type(error).__name__}: {error}"
    return report


def file_report(files: "dict[str, bool]") -> "dict[str, str]":
    """Problems with the files, by path."""
    problems = {}
    for path, is_written in files.items():
        if not os.path.exists(path):
            problems[path] = "missing"
        elif is_written and not os.access(path, os.W_OK):
            problems[path] = "not writable"
    return problems


def main() -> None:
    """Print the report."""
    report = {
        "host": platform.node(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "files": file_report(json.loads(sys.argv[1])),
    }
    report.update(package_report())
    print("\n" + MARK + json.dumps(report))


if __name__ == "__main__":
    main()
