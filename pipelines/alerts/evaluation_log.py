"""Progress lines of the evaluation of alerts, without secrets. A state that lasts is reported when it begins and when it ends."""

from collections.abc import Iterable, Mapping

from pipelines.alerts.alert_rows import DeliveryResult
from pipelines.alerts.receivers.receiver import redacted
from pipelines.alerts.states import ALERT_NAME, Alert, AlertChange
from pipelines.runtime.progress import Progress

_SHOWN = ("pending", "firing", "resolved", "given_up")


class EvaluationLog:
    """Lines about transitions, deliveries and errors."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._failed: dict[str, str] = {}
        self._is_stored = True

    def changed(self, changes: Iterable[AlertChange]) -> None:
        """Report transitions."""
        for change in changes:
            if change.change in _SHOWN:
                self._progress(f"{change.change.replace('_', ' ')}: {described(change.alert)}")

    def rules_failed(self, failed: Mapping[str, str]) -> None:
        """Report rules that cannot be evaluated, and those that can be again."""
        for name, error in failed.items():
            if self._failed.get(name) != error:
                self._progress(f"not evaluated: {name}: {redacted(error, ())}")
        for name in self._failed.keys() - failed.keys():
            self._progress(f"evaluated again: {name}")
        self._failed = dict(failed)

    def delivered(self, result: DeliveryResult) -> None:
        """Report an attempt."""
        notification = result.notification
        content = f"{len(notification.firing)} firing, {len(notification.resolved)} resolved"
        where = f"receiver {notification.receiver} (attempt {notification.attempt})"
        if result.error is not None:
            self._progress(f"not delivered: {content} to {where}: {result.error}")
        else:
            self._progress(f"delivered: {content} to {where}" + (f": {result.remark}" if result.remark else ""))

    def stored(self) -> None:
        """The alerts are stored."""
        if not self._is_stored:
            self._progress("alerts are stored again")
        self._is_stored = True

    def not_stored(self, error: str) -> None:
        """The alerts cannot be stored."""
        if self._is_stored:
            self._progress(f"alerts are not stored, so a restart may repeat notifications: {redacted(error, ())}")
        self._is_stored = False


def described(alert: Alert) -> str:
    """An alert on one line: name, labels, summary."""
    labels = " ".join(f"{name}={value}" for name, value in alert.labels if name != ALERT_NAME)
    summary = dict(alert.annotations).get("summary", "")
    reason = f" ({alert.reason})" if alert.resolved_at_ms is not None and alert.reason else ""
    return redacted(f"{alert.key.rule}{reason} {labels}: {summary}", ())
