"""The interface of receivers of notifications."""

from dataclasses import dataclass
from typing import Protocol

from pipelines.alerts.states import Grouping, Notification


class DeliveryError(Exception):
    """A notification was not accepted. The message has no secret: `Receiver.redacted` removes them."""


@dataclass(frozen=True)
class Context:
    """The content of notifications beside alerts."""

    external_url: str
    now_ms: int


class Receiver(Protocol):
    """A destination of notifications."""

    @property
    def name(self) -> str:
        """Name in the file of rules."""

    @property
    def kind(self) -> str:
        """Kind in the file of rules."""

    @property
    def grouping(self) -> Grouping:
        """Groups and times of its notifications."""

    @property
    def timeout_seconds(self) -> float:
        """Limit of one attempt."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no log may contain."""

    def send(self, notification: Notification, context: Context) -> str:
        """Deliver a notification and return a remark for the log. Raises DeliveryError if it was not accepted."""


def redacted(text: str, secrets: tuple[str, ...]) -> str:
    """The text on one line, without secrets and control characters."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
