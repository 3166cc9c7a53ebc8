"""The type of an API, and the base classes of its messages (`ApiKeys`, `AbstractRequest`, `AbstractResponse`)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from coordinator_core.protocol.error_code import ErrorCode


class NodeRequest:
    """A request about the cluster, which every node answers."""

    __slots__ = ()


class CoordinatorRequest:
    """A request to the group coordinator."""

    __slots__ = ()


class GroupRequest(CoordinatorRequest):
    """A request to the coordinator of one group."""

    __slots__ = ()

    group_id: str


class TransactionRequest:
    """A request to the transaction coordinator."""

    __slots__ = ()

    transactional_id: str | None


#: A request, or the part of a request that has a response of its own.
Request = CoordinatorRequest | NodeRequest | TransactionRequest


class Response:
    """The response to a request, or to one of its parts."""

    __slots__ = ()


class RequestHeader(NamedTuple):
    """Header of a request, versions 0–2 (`RequestHeader.json`); `api_key` and `version` may be unknown ones."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


class SupportedVersions(NamedTuple):
    """Versions of an API that can be read and written here, those of Kafka 4.3 and older ones.

    `flexible` is the first flexible version (KIP-482) or None. `brokers` has the versions that the brokers of an era list in
    ApiVersions, without the eras whose brokers do not have the API.
    """

    lowest: int
    highest: int
    flexible: int | None
    brokers: Mapping[str, range]

    @property
    def all(self) -> range:
        """Every version that can be read and written here."""
        return range(self.lowest, self.highest + 1)

    def is_flexible(self, version: int) -> bool:
        """True if messages of this version have tagged fields (KIP-482)."""
        return self.flexible is not None and version >= self.flexible

    def offered(self, era: str) -> range:
        """Returns the versions that a coordinator of the era offers: those of its brokers that can be read and written here.

        Empty if brokers of the era do not have the API.
        """
        brokers = self.brokers.get(era, range(0))
        return range(max(self.lowest, brokers.start), min(self.highest + 1, brokers.stop))


RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT", bound=Response)


def _top_level_error(response: Any) -> Iterable[ErrorCode]:
    return (response.error,)


@dataclass(frozen=True, eq=False, slots=True)
class Api(Generic[RequestT, ResponseT]):
    """One API: its versions, and the types of its request and response.

    Its codec is in the table of `wire`, its handler in that of `coordinator` or `service`. `name` is Kafka's, and the value of
    the metrics' label `api`. `first_versions` has the first version with a field or rule. `errors` returns the errors of
    a response, at every depth.
    """

    number: int
    name: str
    versions: SupportedVersions
    request: type[RequestT]
    response: type[ResponseT]
    first_versions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    errors: Callable[[ResponseT], Iterable[ErrorCode]] = _top_level_error

    def has_field(self, version: int, name: str) -> bool:
        """True if this version has the field or rule. Raises KeyError for an unknown name."""
        return version >= self.first_versions[name]


@dataclass(frozen=True, eq=False, slots=True)
class CoordinatorApi(Api[RequestT, ResponseT]):
    """An API of the group coordinator.

    `error_response` makes the response to a request that fails as a whole. With `empty_group_id`, the id may be empty, as
    clients before KIP-289 could have it.
    """

    error_response: Callable[[RequestT, ErrorCode], ResponseT] = field(kw_only=True)
    empty_group_id: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False, slots=True)
class TransactionApi(Api[RequestT, ResponseT]):
    """An API of the transaction coordinator. `error_response` makes the response to a request that fails as a whole."""

    error_response: Callable[[RequestT, ErrorCode], ResponseT] = field(kw_only=True)


AnyApi = Api[Any, Any]
