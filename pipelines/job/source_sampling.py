"""The samples of end offsets of each kind of source."""

from collections.abc import Callable

from coordinator_core.health import END_OFFSETS_SCHEMA, LagReason
from pipelines.job.run_options import RunOptions
from pipelines.lag.inputs.append_times import NarrowedAges
from pipelines.lag.inputs.counted_records import CountedRecords
from pipelines.lag.inputs.lag_inputs import LagInputs
from pipelines.lag.inputs.topic_facts import TopicFactsCache
from pipelines.lag.sampling.cluster_sampling import ClusterSampling
from pipelines.lag.sampling.log_end import EndOfPolls, LogEnd
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.lag.sampling.schedule import Sampling
from pipelines.lag.sampling.share_groups import ShareGroups
from pipelines.runtime.progress import Progress
from pipelines.source.address import DEFAULT_TOPIC

_WITHOUT_CLUSTER = LagInputs(without_samples=LagReason.SOURCE_WITHOUT_CLUSTER)


def open_sampling(options: RunOptions, progress: Progress, clock_ms: Callable[[], int]) -> Sampling | None:
    """Samples of brokers, or of the segments in the same directory; without both, lag that is unknown.

    None for Spark's own Kafka source, whose options this program's client does not have.
    """
    match options.address.scheme:
        case "kafka" | "kafka-groups":
            return _of_cluster(options, progress, clock_ms)
        case "segments":
            from coordinator_core.sources.segment_offsets import SegmentOffsetsSampler

            sampler = SegmentOffsetsSampler(options.address.location, clock_ms)
            lag = LagSampling(sampler.sample, settings=options.status, inputs=_WITHOUT_CLUSTER)
            return Sampling(lag, log_end=LogEnd(options.address, options.kafka, clock_ms))
        case "jsonl":
            return Sampling(
                LagSampling(lambda _wanted: END_OFFSETS_SCHEMA.empty_table(), settings=options.status, inputs=_WITHOUT_CLUSTER)
            )
    return None


def _of_cluster(options: RunOptions, progress: Progress, clock_ms: Callable[[], int]) -> Sampling:
    # importing the client library takes half a second, and other sources do not need it
    from coordinator_core.group_polls.share_offsets import ShareOffsetsReader
    from coordinator_core.sources.append_times import AppendTimeReader
    from coordinator_core.sources.first_records import FirstRecordReader
    from coordinator_core.sources.record_counts import DataRecordReader
    from coordinator_core.sources.topic_offsets import TopicOffsetsSampler
    from coordinator_core.sources.topic_settings import TopicSettingsReader

    address, kafka = options.address.kafka_address, options.kafka
    counted, narrowed = options.lag_counted_partitions, options.lag_narrowed_partitions
    facts = TopicFactsCache(TopicSettingsReader(address, kafka).read, progress)
    inputs = LagInputs(
        facts=facts,
        counts=CountedRecords(DataRecordReader(address, kafka).read, counted) if counted else None,
        first_records=FirstRecordReader(address, kafka).read if counted else None,
        append_times=NarrowedAges(AppendTimeReader(address, kafka).search, narrowed) if narrowed else None,
    )
    # one Metadata request per sample also describes the replicas of the topic that is read
    sampler = TopicOffsetsSampler(address, kafka, clock_ms, more_topics=[options.address.topic or DEFAULT_TOPIC])
    shares = ShareGroups(ShareOffsetsReader(address, kafka, clock_ms).read)
    lag = LagSampling(sampler.sample, settings=options.status, inputs=inputs, share_groups=shares)
    cluster = ClusterSampling(sampler.cluster_metadata, cleanup_policies=facts.cleanup_policies)
    log_end = EndOfPolls() if options.address.is_polled else LogEnd(options.address, kafka, clock_ms)
    return Sampling(lag, cluster, log_end)
