"""A metric as data: name, help, labels, and the column of its values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum


class Family(StrEnum):
    """A set of metrics that boards of one exporter use. The values are the names in `metrics.families`."""

    OWN = "grouplake"
    LAG_EXPORTER = "kafka-lag-exporter"
    KAFKA_EXPORTER = "kafka_exporter"
    KMINION = "kminion"
    BURROW = "burrow"
    #: The exporter of Burrow's HTTP API, by another author than Burrow's own metrics.
    BURROW_EXPORTER = "burrow_exporter"
    KLAG = "klag"


class Level(Enum):
    """The subject of a series of a metric."""

    CLUSTER = "cluster"
    PHASE = "phase"
    LOG_PARTITION = "log_partition"
    TRANSACTION_LOG_PARTITION = "transaction_log_partition"
    TRANSACTION_STATE = "transaction_state"
    BROKER = "broker"
    GROUP = "group"
    TOPIC = "topic"
    GROUP_TOPIC = "group_topic"
    TOPIC_PARTITION = "topic_partition"
    GROUP_PARTITION = "group_partition"
    SHARE_PARTITION = "share_partition"


class Source(Enum):
    """The state from which values follow, and with whose age they become stale."""

    #: The job itself: never left out.
    JOB = "job"
    #: Groups at the newest batch.
    GROUPS = "groups"
    #: Positions and ends at the newest sample.
    LAG = "lag"


@dataclass(frozen=True)
class Metric:
    """A gauge. `labels` maps the names of labels to columns of the level; `value` is a column with null for unknown values."""

    name: str
    help: str
    family: Family
    level: Level
    value: str
    labels: Mapping[str, str] = field(default_factory=dict)
    source: Source = Source.LAG
    #: In the set of aggregates that the limit on series keeps longest.
    is_basic: bool = False
