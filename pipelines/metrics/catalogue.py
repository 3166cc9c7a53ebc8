"""All metrics, in the order of the text. Names and labels of an exporter's family are those that its boards query."""

from collections.abc import Iterator

from pipelines.metrics.metric import Family, Level, Metric, Source

_GROUP = {"cluster_name": "cluster", "group": "group"}
_GROUP_TOPIC = {**_GROUP, "topic": "topic"}
_TOPIC_PARTITION = {"topic": "topic", "partition": "partition"}
_OF_CLUSTER = {"cluster_name": "cluster"}
_MEMBER = {"member_host": "member_host", "consumer_id": "consumer_id", "client_id": "client_id"}


def _own() -> Iterator[Metric]:
    def job(name: str, text: str, value: str, level: Level = Level.CLUSTER, label: str | None = None) -> Metric:
        labels = {**_OF_CLUSTER, **({label: label} if label else {})}
        return Metric(f"grouplake_{name}", text, Family.OWN, level, value, labels, Source.JOB)

    yield job("snapshot_timestamp_seconds", "Completion of the newest batch", "snapshot_at")
    yield job("end_offsets_timestamp_seconds", "Time of the newest sample of end offsets", "sampled_at")
    yield job("expected_interval_seconds", "Expected time between two batches of the job, if known", "interval_seconds")
    yield job("maintain_timestamp_seconds", "Completion of the newest maintenance batch", "maintained_at")
    yield job("batch_id", "Id of the newest batch", "batch_id")
    yield job("writer_epoch", "Writer epoch of the newest batch", "generation")
    yield job("batch_seconds", "Duration of the newest batch that read records", "batch_seconds")
    yield job("batch_records_read", "Records read by the newest batch that read records", "records_read")
    yield job("batch_records_kept", "Records left by the reduction of the newest batch that read records", "records_kept")
    yield job("batch_phase_seconds", "Duration of the phase in the newest batch that has it", "seconds", Level.PHASE, "phase")
    yield job("quarantine_rows", "Undecodable records and batches in the table quarantine", "quarantine_rows")
    yield job(
        "next_offset", "First offset of the log partition that is not in the tables", "next_offset",
        Level.LOG_PARTITION, "log_partition",
    )  # fmt: skip

    yield job(
        "transaction_next_offset", "First offset of the partition of __transaction_state that is not in the tables",
        "next_offset", Level.TRANSACTION_LOG_PARTITION, "log_partition",
    )  # fmt: skip
    yield job("transactions", "Transactional ids by state", "ids", Level.TRANSACTION_STATE, "state")
    yield job(
        "oldest_transaction_start_timestamp_seconds", "Start of the oldest transaction that is not complete, if any",
        "oldest_transaction_start",
    )  # fmt: skip

    def group(name: str, text: str, value: str) -> Metric:
        return Metric(f"grouplake_group_{name}", text, Family.OWN, Level.GROUP, value, _GROUP)

    yield group("unknown_partitions", "Committed partitions of the group with unknown lag, if any", "unknown_partitions")
    yield group("lag_seconds_low", "Lower bound of the greatest age of an unread record, if above 0", "lag_seconds_low")
    yield group("messages_lost", "Offsets deleted before the group read them, if any", "messages_lost")
    yield group("retention_margin_seconds", "Time until retention deletes the first unread record", "retention_margin_seconds")
    yield group("stuck_seconds", "Greatest time without progress despite unread records, if above 0", "stuck_seconds")
    yield Metric(
        "grouplake_group_status_info",
        "Status of the group, with the rule that decided it, unless OK",
        Family.OWN,
        Level.GROUP,
        "has_finding",
        {**_GROUP, "status": "status", "rule": "rule"},
    )

    def share(name: str, text: str, value: str) -> Metric:
        labels = {**_GROUP, **_TOPIC_PARTITION}
        return Metric(f"grouplake_share_group_{name}", text, Family.OWN, Level.SHARE_PARTITION, value, labels)

    yield share("start_offset", "Share-partition start offset of the share group", "start_offset")
    yield share("lag", "Records that the share group has not acknowledged", "lag")


def _lag_exporter() -> Iterator[Metric]:
    family = Family.LAG_EXPORTER
    partition = {"cluster_name": "cluster", **_TOPIC_PARTITION}
    member = {**_GROUP, **_TOPIC_PARTITION, **_MEMBER}
    yield Metric("kafka_partition_latest_offset", "Log end of the partition", family, Level.TOPIC_PARTITION, "latest_offset",
                 partition)  # fmt: skip
    yield Metric("kafka_partition_earliest_offset", "First offset in the log of the partition", family, Level.TOPIC_PARTITION,
                 "earliest_offset", partition)  # fmt: skip
    of_partition = (
        ("group_offset", "Committed offset of the group", "group_offset"),
        ("group_lag", "Log end minus committed offset", "lag"),
        ("group_lag_seconds", "Age of the next record to read", "lag_seconds"),
    )
    for name, text, value in of_partition:
        yield Metric(f"kafka_consumergroup_{name}", text, family, Level.GROUP_PARTITION, value, member)
    of_group = (
        ("group_max_lag", "Greatest lag of a partition of the group", "max_lag"),
        ("group_max_lag_seconds", "Greatest age of a next record of the group", "max_lag_seconds"),
        ("group_sum_lag", "Sum of the lags of the group", "sum_lag"),
    )
    for name, text, value in of_group:
        yield Metric(f"kafka_consumergroup_{name}", text, family, Level.GROUP, value, _GROUP, is_basic=True)
    yield Metric("kafka_consumergroup_group_topic_sum_lag", "Sum of the lags of the group in the topic", family,
                 Level.GROUP_TOPIC, "sum_lag", _GROUP_TOPIC)  # fmt: skip
    yield Metric("kafka_consumergroup_poll_time_ms", "Duration of the newest sample of end offsets in milliseconds", family,
                 Level.CLUSTER, "poll_time_ms", _OF_CLUSTER, Source.JOB)  # fmt: skip


def _kafka_exporter() -> Iterator[Metric]:
    family = Family.KAFKA_EXPORTER
    yield Metric("kafka_exporter_build_info", "Version and git revision of Grouplake", family, Level.CLUSTER, "one",
                 {"version": "version", "revision": "revision"}, Source.JOB)  # fmt: skip
    yield Metric("kafka_brokers", "Number of brokers", family, Level.CLUSTER, "brokers")
    yield Metric("kafka_broker_info", "Brokers with their addresses", family, Level.BROKER, "one",
                 {"id": "node_id", "address": "address"})  # fmt: skip
    yield Metric("kafka_topic_partitions", "Number of partitions of the topic", family, Level.TOPIC, "partitions",
                 {"topic": "topic"})  # fmt: skip
    of_partition = (
        ("current_offset", "Log end of the partition", "latest_offset"),
        ("oldest_offset", "First offset in the log of the partition", "earliest_offset"),
        ("leader", "Node id of the leader", "leader"),
        ("leader_is_preferred", "Whether the leader is the preferred replica: 0 or 1", "is_preferred"),
        ("replicas", "Number of replicas", "replicas"),
        ("in_sync_replica", "Number of in-sync replicas", "in_sync"),
        ("under_replicated_partition", "Whether in-sync replicas are missing: 0 or 1", "is_under_replicated"),
    )
    for name, text, value in of_partition:
        yield Metric(f"kafka_topic_partition_{name}", text, family, Level.TOPIC_PARTITION, value, _TOPIC_PARTITION)
    group = {"consumergroup": "group"}
    of_group_partition = {**group, **_TOPIC_PARTITION}
    of_group_topic = {**group, "topic": "topic"}
    yield Metric("kafka_consumergroup_current_offset", "Committed offset of the group", family, Level.GROUP_PARTITION,
                 "group_offset", of_group_partition)  # fmt: skip
    yield Metric("kafka_consumergroup_lag", "Log end minus committed offset", family, Level.GROUP_PARTITION, "lag",
                 of_group_partition)  # fmt: skip
    yield Metric("kafka_consumergroup_current_offset_sum", "Sum of the committed offsets of the group in the topic", family,
                 Level.GROUP_TOPIC, "sum_offset", of_group_topic)  # fmt: skip
    yield Metric("kafka_consumergroup_lag_sum", "Sum of the lags of the group in the topic", family, Level.GROUP_TOPIC,
                 "sum_lag", of_group_topic)  # fmt: skip
    yield Metric("kafka_consumergroup_members", "Number of members of the group", family, Level.GROUP, "members", group,
                 Source.GROUPS, is_basic=True)  # fmt: skip


def _kminion() -> Iterator[Metric]:
    def metric(name: str, text: str, level: Level, value: str, *labels: str, source: Source = Source.LAG) -> Metric:
        renamed = {"group": "group_id", "topic": "topic_name", "partition": "partition_id"}
        return Metric(
            f"kminion_kafka_{name}",
            text,
            Family.KMINION,
            level,
            value,
            {renamed.get(each, each): each for each in labels},
            source,
        )

    of_group = "consumer_group_"
    yield Metric("kminion_exporter_up", "Whether the tables were read: 1", Family.KMINION, Level.CLUSTER, "one", {}, Source.JOB)
    yield Metric("kminion_kafka_cluster_info", "Cluster with its number of brokers", Family.KMINION, Level.CLUSTER, "has_brokers",
                 {"broker_count": "broker_count", "controller_id": "controller_id", "cluster_id": "cluster_id",
                  "cluster_version": "cluster_version"})  # fmt: skip
    yield Metric("kminion_kafka_broker_info", "Brokers with their addresses", Family.KMINION, Level.BROKER, "one",
                 {"broker_id": "node_id", "address": "host", "port": "port", "rack_id": "rack",
                  "is_controller": "is_controller"})  # fmt: skip
    yield metric("topic_info", "Topics with their numbers of partitions and replicas", Level.TOPIC, "has_partitions", "topic",
                 "partition_count", "replication_factor", "cleanup_policy")  # fmt: skip
    yield metric("topic_high_water_mark_sum", "Sum of the log ends of the topic", Level.TOPIC, "latest_offset", "topic")
    yield metric("topic_low_water_mark_sum", "Sum of the first offsets of the topic", Level.TOPIC, "earliest_offset", "topic")
    yield metric("topic_partition_high_water_mark", "Log end of the partition", Level.TOPIC_PARTITION, "latest_offset", "topic",
                 "partition")  # fmt: skip
    yield metric("topic_partition_low_water_mark", "First offset in the log of the partition", Level.TOPIC_PARTITION,
                 "earliest_offset", "topic", "partition")  # fmt: skip
    yield metric(f"{of_group}info", "Groups with their states: 1 if Stable", Level.GROUP, "is_stable", "group", "protocol",
                 "protocol_type", "state", "coordinator_id", source=Source.GROUPS)  # fmt: skip
    yield metric(f"{of_group}members", "Number of members of the group", Level.GROUP, "members", "group", source=Source.GROUPS)
    yield metric(f"{of_group}empty_members", "Members without partitions", Level.GROUP, "empty_members", "group",
                 source=Source.GROUPS)  # fmt: skip
    yield metric(f"{of_group}topic_members", "Members with partitions of the topic", Level.GROUP_TOPIC, "members", "group",
                 "topic")  # fmt: skip
    yield metric(f"{of_group}topic_assigned_partitions", "Partitions of the topic with an owner", Level.GROUP_TOPIC,
                 "assigned_partitions", "group", "topic")  # fmt: skip
    yield metric(f"{of_group}topic_offset_sum", "Sum of the committed offsets of the group in the topic", Level.GROUP_TOPIC,
                 "sum_offset", "group", "topic")  # fmt: skip
    yield metric(f"{of_group}topic_lag", "Sum of the lags of the group in the topic", Level.GROUP_TOPIC, "sum_lag", "group",
                 "topic")  # fmt: skip
    yield metric(f"{of_group}topic_partition_lag", "Log end minus committed offset", Level.GROUP_PARTITION, "lag", "group",
                 "topic", "partition")  # fmt: skip


def _burrow() -> Iterator[Metric]:
    def metric(name: str, text: str, level: Level, value: str, *labels: str) -> Metric:
        renamed = {"group": "consumer_group"}
        of_cluster = {"cluster": "cluster", **{renamed.get(each, each): each for each in labels}}
        return Metric(f"burrow_kafka_{name}", text, Family.BURROW, level, value, of_cluster)

    partition = ("group", "topic", "partition")
    yield metric("consumer_lag_total", "Sum of the lags of the group", Level.GROUP, "burrow_lag", "group")
    yield metric("consumer_status", "Status of the group: 1 OK, 2 WARN, 3 ERR", Level.GROUP, "burrow_status", "group")
    yield metric("topic_partition_status", "Status of the partition: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND",
                 Level.GROUP_PARTITION, "burrow_status", *partition)  # fmt: skip
    yield metric("consumer_current_offset", "Committed offset of the group", Level.GROUP_PARTITION, "burrow_offset", *partition)
    yield metric("consumer_partition_lag", "Log end minus committed offset", Level.GROUP_PARTITION, "lag", *partition)
    yield metric("topic_partition_offset", "Log end of the partition", Level.TOPIC_PARTITION, "latest_offset", "topic",
                 "partition")  # fmt: skip


def _burrow_exporter() -> Iterator[Metric]:
    def metric(name: str, text: str, level: Level, value: str, *labels: str) -> Metric:
        of_cluster = {"cluster": "cluster", **{each: each for each in labels}}
        return Metric(f"kafka_burrow_{name}", text, Family.BURROW_EXPORTER, level, value, of_cluster)

    partition = ("group", "topic", "partition")
    status = "2 OK, 3 WARN, 4 ERR, 5 STOP, 6 STALL, 7 REWIND"
    yield metric("total_lag", "Sum of the lags of the group", Level.GROUP, "burrow_lag", "group")
    yield metric("status", f"Status of the group: {status}", Level.GROUP, "exporter_status", "group")
    yield metric("topic_lag", "Sum of the lags of the group in the topic", Level.GROUP_TOPIC, "sum_lag", "group", "topic")
    yield metric("partition_lag", "Log end minus committed offset", Level.GROUP_PARTITION, "lag", *partition)
    yield metric("partition_current_offset", "Committed offset of the group", Level.GROUP_PARTITION, "burrow_offset", *partition)
    yield metric("partition_status", f"Status of the partition: {status}", Level.GROUP_PARTITION, "exporter_status", *partition)
    yield metric("partition_max_offset", "Log end of the partition", Level.GROUP_PARTITION, "latest_offset", *partition)
    yield metric("topic_partition_offset", "Log end of the partition", Level.TOPIC_PARTITION, "latest_offset", "topic",
                 "partition")  # fmt: skip


def _klag() -> Iterator[Metric]:
    def metric(name: str, text: str, level: Level, value: str, *labels: str) -> Metric:
        renamed = {"group": "consumer_group"}
        return Metric(f"klag_{name}", text, Family.KLAG, level, value, {renamed.get(each, each): each for each in labels})

    partition = ("group", "topic", "partition")
    yield metric("consumer_lag", "Log end minus committed offset", Level.GROUP_PARTITION, "lag", *partition)
    yield metric("consumer_committed_offset", "Committed offset of the group", Level.GROUP_PARTITION, "group_offset", *partition)
    yield metric("partition_log_end_offset", "Log end of the partition", Level.GROUP_PARTITION, "latest_offset", *partition)
    yield metric("consumer_lag_sum", "Sum of the lags of the group", Level.GROUP, "sum_lag", "group")
    yield metric("consumer_lag_max", "Greatest lag of a partition of the group", Level.GROUP, "max_lag", "group")
    yield metric("consumer_lag_ms", "Greatest age of a next record of the group in the topic in milliseconds", Level.GROUP_TOPIC,
                 "max_lag_ms", "group", "topic")  # fmt: skip
    yield metric("topic_partitions", "Number of partitions of the topic", Level.TOPIC, "partitions", "topic")
    yield metric("hot_partition", "Records per second times 100 of a hot partition on which a group lags", Level.TOPIC_PARTITION,
                 "hot_rate_100", "topic", "partition")  # fmt: skip
    yield metric("hot_partition_lag", "Log end minus committed offset of a group that lags on a hot partition",
                 Level.GROUP_PARTITION, "hot_lag", *partition)  # fmt: skip


METRICS = (*_own(), *_lag_exporter(), *_kafka_exporter(), *_kminion(), *_burrow(), *_burrow_exporter(), *_klag())
