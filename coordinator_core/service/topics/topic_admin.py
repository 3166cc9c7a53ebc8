"""Administration of topics: creation, deletion, more partitions, configs, sizes (`ReplicationControlManager`)."""

import shutil
from collections.abc import Callable

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.configs import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ResourceType,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.topics import (
    AlterConfigOperation,
    AlterConfigsRequest,
    AlterConfigsResponse,
    ConfigChange,
    CreatedPartitions,
    CreatedTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopic,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    NewPartitions,
    NewTopic,
)
from coordinator_core.segment_log.errors import SegmentLogError
from coordinator_core.segment_log.topic_config import DEFINITIONS, ConfigKind, InvalidConfig, TopicConfig
from coordinator_core.segment_log.topic_store import DataTopic
from coordinator_core.service.topic_settings import topic_name_problem
from coordinator_core.service.topics.topic_registry import TopicRegistry

_DEFAULT = -1
_MOST_PARTITIONS = 10_000
_STORAGE_ERRORS = (OSError, SegmentLogError)


class AdminError(Exception):
    """A request about a topic is refused; `error` is its answer."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def _checked_partitions(partitions: int) -> int:
    if not 1 <= partitions <= _MOST_PARTITIONS:
        raise AdminError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions: use 1–{_MOST_PARTITIONS}")
    return partitions


class TopicAdmin:
    """Changes and descriptions of the topics in the registry.

    `num_partitions` is the default of new topics, `node_id` the only node; `deleted` is called with a deleted topic.
    """

    def __init__(self, topics: TopicRegistry, num_partitions: int, node_id: int, deleted: Callable[[DataTopic], None]) -> None:
        self._topics = topics
        self._num_partitions = num_partitions
        self._node_id = node_id
        self._deleted = deleted

    # ---- topics

    def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Create topics with data."""
        names = [topic.name for topic in request.topics]
        return CreateTopicsResponse(
            tuple(self._create(topic, names.count(topic.name), request.validate_only) for topic in request.topics)
        )

    def _create(self, topic: NewTopic, times: int, validate_only: bool) -> CreatedTopic:
        try:
            partitions, config = self._checked(topic, times)
            created = None
            if not validate_only:
                store = self._topics.store
                assert store is not None
                created = store.create(topic.name, partitions, config)
                self._topics.refresh()
        except AdminError as refused:
            return CreatedTopic(topic.name, refused.error, str(refused))
        except _STORAGE_ERRORS as error:
            return CreatedTopic(topic.name, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        topic_id = ZERO_UUID if created is None else created.topic_id
        return CreatedTopic(topic.name, ErrorCode.NONE, None, topic_id, partitions, 1, _entries(config))

    def _checked(self, topic: NewTopic, times: int) -> tuple[int, TopicConfig]:
        problem = topic_name_problem(topic.name)
        if times > 1:
            raise AdminError(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is requested {times} times")
        if problem is not None:
            raise AdminError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if self._topics.find(topic.name) is not None:
            raise AdminError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        if self._topics.store is None:
            raise AdminError(ErrorCode.POLICY_VIOLATION, "this coordinator has no log directory for topics with data")
        partitions = self._partitions_of(topic)
        try:
            return partitions, TopicConfig({name: value for name, value in topic.configs if value is not None})
        except InvalidConfig as error:
            raise AdminError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def _partitions_of(self, topic: NewTopic) -> int:
        if topic.assignments:
            if topic.partitions != _DEFAULT or topic.replication_factor != _DEFAULT:
                message = "a topic with assignments must have -1 partitions and -1 replicas"
                raise AdminError(ErrorCode.INVALID_REQUEST, message)
            if sorted(number for number, _ in topic.assignments) != list(range(len(topic.assignments))):
                raise AdminError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions of an assignment must be 0 and following")
            self._check_nodes([nodes for _, nodes in topic.assignments])
            return _checked_partitions(len(topic.assignments))
        if topic.replication_factor not in (_DEFAULT, 1):
            message = f"replication factor {topic.replication_factor} is not possible with 1 node: use 1"
            raise AdminError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        return _checked_partitions(self._num_partitions if topic.partitions == _DEFAULT else topic.partitions)

    def _check_nodes(self, assignments: list[tuple[int, ...]]) -> None:
        if any(nodes != (self._node_id,) for nodes in assignments):
            message = f"each partition must be assigned to the only node, {self._node_id}"
            raise AdminError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

    def delete_topics(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        """Delete topics with their data, except declared ones."""
        return DeleteTopicsResponse(tuple(self._delete(topic) for topic in request.topics))

    def _delete(self, topic: DeletableTopic) -> DeletedTopic:
        by_id = topic.name is None
        known = self._topics.find(topic.name, topic.topic_id)
        if known is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return DeletedTopic(topic.name, topic.topic_id, error)
        if known.is_internal:
            message = "the topic of the coordinator's log cannot be deleted"
            return DeletedTopic(known.name, known.topic_id, ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        if known.data is None or known.data.is_declared:
            message = f"topic {known.name!r} is declared in [coordinator.topics]: remove it there"
            return DeletedTopic(known.name, known.topic_id, ErrorCode.TOPIC_DELETION_DISABLED, message)
        store = self._topics.store
        assert store is not None
        try:
            store.delete(known.name)
        except _STORAGE_ERRORS as error:
            return DeletedTopic(known.name, known.topic_id, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        finally:
            self._topics.refresh()
        self._deleted(known.data)
        return DeletedTopic(known.name, known.topic_id, ErrorCode.NONE)

    def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """Add partitions to topics with data."""
        return CreatePartitionsResponse(tuple(self._add_partitions(topic, request.validate_only) for topic in request.topics))

    def _add_partitions(self, topic: NewPartitions, validate_only: bool) -> CreatedPartitions:
        try:
            self._check_partitions(topic)
            if not validate_only:
                store = self._topics.store
                assert store is not None
                store.add_partitions(topic.name, topic.total)
        except AdminError as refused:
            return CreatedPartitions(topic.name, refused.error, str(refused))
        except _STORAGE_ERRORS as error:
            return CreatedPartitions(topic.name, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        return CreatedPartitions(topic.name, ErrorCode.NONE)

    def _check_partitions(self, topic: NewPartitions) -> None:
        known = self._topics.find(topic.name)
        if known is None:
            raise AdminError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name!r} does not exist")
        if known.data is None:
            raise AdminError(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} has no data: its partitions are configured")
        if not known.partitions < topic.total <= _MOST_PARTITIONS:
            message = f"the topic has {known.partitions} partitions, requested are {topic.total}: use up to {_MOST_PARTITIONS}"
            raise AdminError(ErrorCode.INVALID_PARTITIONS, message)
        if topic.assignments is not None:
            if len(topic.assignments) != topic.total - known.partitions:
                message = f"{topic.total - known.partitions} new partitions have {len(topic.assignments)} assignments"
                raise AdminError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
            self._check_nodes(list(topic.assignments))

    # ---- configs

    def describe_topic(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """Describe the configs of a topic; a topic without data has the defaults."""
        known = self._topics.find(request.resource_name)
        if known is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return DescribeConfigsResponse(error, request.resource_type, request.resource_name)
        config = TopicConfig({}) if known.data is None else known.data.config
        entries = tuple(entry for entry in _entries(config) if request.keys is None or entry.name in request.keys)
        return DescribeConfigsResponse(ErrorCode.NONE, request.resource_type, request.resource_name, entries)

    def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """Change configs of a topic with data."""
        kind, name = request.resource_type, request.resource_name
        try:
            self._alter(request)
        except AdminError as refused:
            return AlterConfigsResponse(refused.error, kind, name, str(refused))
        except _STORAGE_ERRORS as error:
            return AlterConfigsResponse(ErrorCode.KAFKA_STORAGE_ERROR, kind, name, str(error))
        return AlterConfigsResponse(ErrorCode.NONE, kind, name)

    def _alter(self, request: AlterConfigsRequest) -> None:
        if request.resource_type != ResourceType.TOPIC:
            message = f"configs of resource type {request.resource_type} cannot be changed: use the configuration file"
            raise AdminError(ErrorCode.INVALID_REQUEST, message)
        known = self._topics.find(request.resource_name)
        if known is None:
            raise AdminError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {request.resource_name!r} does not exist")
        if known.data is None:
            raise AdminError(ErrorCode.INVALID_REQUEST, f"topic {known.name!r} has no data and no configs")
        if known.data.is_declared:
            message = f"topic {known.name!r} is declared in [coordinator.topics]: change its configs there"
            raise AdminError(ErrorCode.POLICY_VIOLATION, message)
        values = dict(known.data.config.values)
        for change in request.changes:
            _apply(values, known.data.config, change)
        try:
            config = TopicConfig(values)
        except InvalidConfig as error:
            raise AdminError(ErrorCode.INVALID_CONFIG, str(error)) from error
        if not request.validate_only and self._topics.store is not None:
            self._topics.store.configure(known.name, config)

    # ---- log directory

    def describe_log_dirs(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        """Report the sizes of partitions with data, and the space of their volume."""
        store = self._topics.store
        if store is None:
            return DescribeLogDirsResponse(ErrorCode.NONE)
        sizes = {
            TopicPartition(topic.name, number): sum(segment.size for segment in partition.log.segments)
            for topic in store.topics.values()
            for number, partition in enumerate(topic.partitions)
            if request.topics is None or number in request.topics.get(topic.name, ())
        }
        try:
            usage = shutil.disk_usage(store.directory)
        except OSError:
            return DescribeLogDirsResponse(ErrorCode.KAFKA_STORAGE_ERROR, str(store.directory))
        return DescribeLogDirsResponse(ErrorCode.NONE, str(store.directory.resolve()), sizes, usage.total, usage.free)


def _entries(config: TopicConfig) -> tuple[ConfigEntry, ...]:
    return tuple(
        ConfigEntry(
            name,
            config.text(name),
            ConfigSource.TOPIC_CONFIG if name in config.values else ConfigSource.DEFAULT_CONFIG,
            ConfigType(definition.kind.value),
            False,
        )
        for name, definition in DEFINITIONS.items()
    )


def _apply(values: dict[str, str], config: TopicConfig, change: ConfigChange) -> None:
    """Apply one change to the values that are set. Raises AdminError."""
    definition = DEFINITIONS.get(change.name)
    if definition is None:
        raise AdminError(ErrorCode.INVALID_CONFIG, f"unknown topic config {change.name}")
    if change.operation == AlterConfigOperation.DELETE:
        values.pop(change.name, None)
        return
    if change.value is None:
        raise AdminError(ErrorCode.INVALID_CONFIG, f"config {change.name} has no value")
    if change.operation == AlterConfigOperation.SET:
        values[change.name] = change.value
        return
    if change.operation not in (AlterConfigOperation.APPEND, AlterConfigOperation.SUBTRACT):
        raise AdminError(ErrorCode.INVALID_REQUEST, f"unknown operation {change.operation} for config {change.name}")
    if definition.kind is not ConfigKind.LIST:
        raise AdminError(ErrorCode.INVALID_CONFIG, f"config {change.name} is not a list")
    current = [part for part in config.text(change.name).split(",") if part]
    named = [part for part in change.value.split(",") if part]
    if change.operation == AlterConfigOperation.APPEND:
        result = current + [part for part in named if part not in current]
    else:
        result = [part for part in current if part not in named]
    values[change.name] = ",".join(result)
