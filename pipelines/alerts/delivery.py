"""Delivery of notifications: receivers in parallel, the notifications of one receiver in sequence.

A receiver that does not answer costs one time limit per evaluation, and delays no other receiver. An attempt that does not end is
left to its thread; its receiver gets nothing more until the thread has ended.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from pipelines.alerts.alert_rows import DeliveryResult
from pipelines.alerts.receivers.receiver import Context, DeliveryError, Receiver, redacted
from pipelines.alerts.states import Notification

#: Time beyond the limit of an attempt after which its thread is left alone.
_GRACE_SECONDS = 1.0

#: Longest text of an error in the log.
_LONGEST = 300


class Deliverer:
    """Sends notifications to receivers."""

    def __init__(self, receivers: Mapping[str, Receiver]) -> None:
        self._receivers = receivers
        self._threads: dict[str, threading.Thread] = {}

    def ready(self, notifications: Iterable[Notification]) -> list[Notification]:
        """The notifications whose receivers have no unfinished attempt."""
        return [each for each in notifications if not self._is_busy(each.receiver)]

    def _is_busy(self, receiver: str) -> bool:
        thread = self._threads.get(receiver)
        return thread is not None and thread.is_alive()

    def deliver(self, notifications: Sequence[Notification], context: Context) -> list[DeliveryResult]:
        """Send notifications and return the results; those that were not tried because of an earlier failure have none."""
        by_receiver: dict[str, list[Notification]] = {}
        for notification in notifications:
            by_receiver.setdefault(notification.receiver, []).append(notification)
        results: dict[str, list[DeliveryResult]] = {name: [] for name in by_receiver}
        for name, wanted in by_receiver.items():
            arguments = (self._receivers[name], wanted, context, results[name])
            self._threads[name] = threading.Thread(target=_send_all, args=arguments, name=f"alerts to {name}", daemon=True)
            self._threads[name].start()
        ended = []
        started = time.monotonic()
        for name, wanted in by_receiver.items():
            limit = 2 * self._receivers[name].timeout_seconds + _GRACE_SECONDS
            self._threads[name].join(max(0.0, started + limit - time.monotonic()))
            found = list(results[name])
            ended += found
            if self._threads[name].is_alive():
                ended.append(DeliveryResult(wanted[len(found)], f"no response within {limit:g} s"))
        return ended


def _send_all(receiver: Receiver, notifications: Sequence[Notification], context: Context, results: list[DeliveryResult]) -> None:
    """Send until the first failure, or until the time limit of one attempt has passed; the rest is due at the next evaluation."""
    started = time.monotonic()
    for notification in notifications:
        result = _send(receiver, notification, context)
        results.append(result)
        if result.error is not None or time.monotonic() - started > receiver.timeout_seconds:
            return


def _send(receiver: Receiver, notification: Notification, context: Context) -> DeliveryResult:
    try:
        remark = receiver.send(notification, context)
    except DeliveryError as error:
        return DeliveryResult(notification, redacted(str(error), receiver.secrets)[:_LONGEST])
    except Exception as error:  # a receiver's defect must not end the evaluation of alerts
        return DeliveryResult(notification, redacted(f"{type(error).__name__}: {error}", receiver.secrets)[:_LONGEST])
    return DeliveryResult(notification, None, redacted(remark, receiver.secrets)[:_LONGEST])
