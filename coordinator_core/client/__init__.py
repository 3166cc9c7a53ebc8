"""Group members over TCP: a single one, or a crowd for load tests."""

from coordinator_core.client.connection import BrokerConnection, connect
from coordinator_core.client.crowd import Crowd
from coordinator_core.client.crowd_script import Action, CrowdSettings, MemberStep, script
from coordinator_core.client.errors import ClientError, Disconnected, NoCommonVersion, TimedOut
from coordinator_core.client.group_client import ClusterClient, Connections, Server
from coordinator_core.client.runner import MemberRunner
from coordinator_core.client.settings import ConnectionSettings

__all__ = [
    "Action",
    "BrokerConnection",
    "ClientError",
    "ClusterClient",
    "ConnectionSettings",
    "Connections",
    "Crowd",
    "CrowdSettings",
    "Disconnected",
    "MemberRunner",
    "MemberStep",
    "NoCommonVersion",
    "Server",
    "TimedOut",
    "connect",
    "script",
]
