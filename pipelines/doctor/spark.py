"""Check of Spark: its session starts, and the executors of a cluster have what the tasks need."""

from collections.abc import Iterator

from pipelines.doctor.finding import CheckResult, ok
from pipelines.doctor.subject import Subject
from pipelines.job.shared_files import shared_files
from pipelines.runtime.hidden_pandas import show_pandas


def session(subject: Subject) -> Iterator[CheckResult]:
    """Start a session with the settings of the job, with the checks that a run makes; it ends with this process."""
    show_pandas()
    from pipelines.job.spark.executors import is_cluster
    from pipelines.job.spark.session import start_session

    settings = subject.configuration.spark
    started = start_session(settings, subject.progress)
    context = started.spark.sparkContext
    yield ok(f"Spark {context.version} has started, master {context.master}, {context.defaultParallelism} cores")
    if subject.address is not None and subject.tables is not None:
        files = shared_files(subject.address, subject.kafka, subject.tables)
    else:
        files = {}
    started.expect_usable_executors(files, settings["executors_seconds"], subject.progress)
    if is_cluster(settings["master"]):
        yield ok("every executor has this environment and the files of the job")
