"""Checks of the dashboard's settings, and of the file of alert rules with its receivers."""

from collections import Counter
from collections.abc import Iterator

from pipelines.alerts.rules_file import load_rules
from pipelines.doctor.finding import CheckResult, ok, warning
from pipelines.doctor.subject import Subject


def dashboard(subject: Subject) -> Iterator[CheckResult]:
    """The section `[dashboard]`, by the checks with which the server starts."""
    if subject.dashboard is None:
        yield warning("the dashboard is not installed", "if it is wanted: pip install 'grouplake[dashboard]'")
        return
    yield ok(f"the dashboard can listen on {subject.dashboard()}")


def rules(subject: Subject) -> Iterator[CheckResult]:
    """The file of alert rules: rules, owners, and the addresses of receivers."""
    assert subject.rules is not None
    found = load_rules(subject.rules)
    kinds = Counter(receiver.kind for receiver in found.receivers.values())
    described = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    yield ok(f"rules: {len(found.rules)}; owners: {len(found.owners)}; receivers: {described}")
