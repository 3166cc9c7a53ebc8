"""Spark's daemon of Python workers, which loads the modules of a read before it forks the first worker.

Spark starts it by `spark.python.daemon.module` once per session; it forks a worker per concurrent task. Workers inherit imported
modules and compiled functions, which saves a second in each first task of a worker.
"""

import sys

from pyspark.daemon import manager

#: Module of workers that run tasks; daemons of other modules plan reads but do not read.
_READS = "pyspark.worker"

if __name__ == "__main__":
    if sys.argv[1:2] == [_READS]:
        from pipelines.source.warm_up import load_kernels

        load_kernels()
    manager()
