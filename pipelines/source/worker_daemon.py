"""Spark's daemon of Python workers, with what a read of the log needs loaded before the first worker is forked.

Spark starts it by `spark.python.daemon.module` once per session and forks a worker per concurrent task. What the daemon has
imported and compiled, its workers have: a second of each first task, and of each worker after that.
"""

import sys

from pyspark.daemon import manager

#: Spark runs daemons for other errands too, with other modules: those that plan a read but read nothing.
_READS = "pyspark.worker"

if __name__ == "__main__":
    if sys.argv[1:2] == [_READS]:
        from pipelines.source.warm_up import load_kernels

        load_kernels()
    manager()
