"""Expressions of three public Grafana boards, with values for their variables.

A: `Kafka Lag Exporter` (kafka-lag-exporter). B: 7589, `Kafka Exporter Overview`. S: `Strimzi Kafka Exporter`.
"""

from collections.abc import Mapping

NAMESPACE, CLUSTER, STRIMZI = "kafka", "east", "my-cluster"
#: Labels of the target in the boards.
TARGET_LABELS = {"namespace": NAMESPACE, "strimzi_io_cluster": STRIMZI}

_M = '{namespace="kafka",cluster_name="east",group=~".+",group!=""}'
_EACH = '{namespace="kafka",cluster_name="east"}'
BOARD_A = (
    f"topk(50, kafka_consumergroup_group_max_lag_seconds{_M})",
    f"topk(25, kafka_consumergroup_group_lag_seconds{_M})",
    f"topk(50, kafka_consumergroup_group_max_lag{_M})",
    f"topk(25, kafka_consumergroup_group_lag{_M})",
    f"kafka_consumergroup_group_max_lag_seconds{_M}",
    f"kafka_consumergroup_group_max_lag{_M}",
    f"max(kafka_consumergroup_group_lag_seconds{_M}) by (group)",
    f"sum(kafka_consumergroup_group_offset{_M})",
    f"sum((kafka_consumergroup_group_offset{_M} * 0) + on(namespace,cluster_name,topic,partition) group_left() "
    f"kafka_partition_latest_offset{_EACH})",
    "kafka_consumergroup_group_lag",
    'kafka_consumergroup_group_lag{namespace="kafka"}',
    f"kafka_consumergroup_group_lag{_EACH}",
)

_INSTANCE = 'instance="INSTANCE"'
BOARD_B = (
    f'sum(rate(kafka_topic_partition_current_offset{{{_INSTANCE}, topic=~".+"}}[1m])) by (topic)',
    f'sum(kafka_consumergroup_lag{{{_INSTANCE},topic=~".+"}}) by (consumergroup, topic)',
    "sum(delta(kafka_topic_partition_current_offset{instance=~'INSTANCE', topic=~\".+\"}[5m])/5) by (topic)",
    "sum(delta(kafka_consumergroup_current_offset{instance=~'INSTANCE',topic=~\".+\"}[5m])/5) by (consumergroup, topic)",
    f'sum by(topic) (kafka_topic_partitions{{{_INSTANCE},topic=~".+"}})',
)
#: Selector → label whose values fill a variable.
VARIABLES_B = {
    "kafka_consumergroup_current_offset": "job",
    'kafka_consumergroup_current_offset{job=~"grouplake"}': "instance",
    "kafka_topic_partition_current_offset{instance='INSTANCE',topic!='__consumer_offsets',topic!='--kafka'}": "topic",
}

_T = 'topic=~".+",namespace=~"kafka"'
_G = f'consumergroup=~".+",{_T}'
BOARD_S = (
    f"count(kafka_topic_partitions{{{_T}}})",
    f"sum(kafka_topic_partitions{{{_T}}})",
    'sum(kafka_topic_partition_replicas{topic=~".+",namespace="kafka"})',
    f"sum(kafka_topic_partition_in_sync_replica{{{_T}}})",
    f"sum(kafka_topic_partition_under_replicated_partition{{{_T}}})",
    f"sum(kafka_topic_partition_leader_is_preferred{{{_T}}} < bool 1)",
    f"sum(rate(kafka_topic_partition_current_offset{{{_T}}}[5m])) by (topic)",
    f"sum(delta(kafka_consumergroup_current_offset{{{_G}}}[5m])/300) by (consumergroup, topic)",
    f"sum(kafka_consumergroup_lag{{{_G}}}) by (consumergroup, topic)",
    f"sum(kafka_consumergroup_current_offset{{{_G}}}) by (consumergroup,partition,topic)",
    f"sum(kafka_consumergroup_lag{{{_G}}}) by (consumergroup,partition,topic)",
    f"sum(kafka_topic_partitions{{{_T}}}) by (topic)",
    f"sum(kafka_topic_partition_current_offset{{{_T}}}) by (partition,topic)",
    f"sum(kafka_topic_partition_oldest_offset{{{_T}}}) by (partition,topic)",
    "kafka_broker_info",
    'kafka_broker_info{namespace="kafka"}',
    # its rules file
    "kafka_topic_partition_under_replicated_partition > 0",
    "kafka_consumergroup_lag > 1000",
    'changes(kafka_topic_partition_current_offset{topic="quiet"}[10m]) == 0',
)
_STRIMZI_OFFSETS = 'kafka_consumergroup_current_offset{namespace="kafka",strimzi_io_cluster="my-cluster"}'
VARIABLES_S = (
    (_STRIMZI_OFFSETS, "consumergroup"),
    (_STRIMZI_OFFSETS, "topic"),
    ("kafka_broker_info", "namespace"),
    ('kafka_broker_info{namespace="kafka"}', "strimzi_io_cluster"),
)

#: Expressions of boards that no exporter of lag answers: JVM of the exporter, and JMX of brokers.
NOT_OURS = (
    'sum(rate(jvm_memory_bytes_used{app_kubernetes_io_instance="kafka-lag-exporter"}[5m])) by (kubernetes_pod_name)',
    'sum(kafka_cluster_partition_atminisr{topic=~".+",namespace=~"kafka"})',
    'sum(kafka_cluster_partition_underminisr{topic=~".+",namespace=~"kafka"})',
)


def with_values(expression: str, values: Mapping[str, str]) -> str:
    """The expression with texts replaced, such as the variables of a board."""
    for name, value in values.items():
        expression = expression.replace(name, value)
    return expression
