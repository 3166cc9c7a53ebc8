"""The alerts about a history: rules evaluated after each of its samples, by the evaluator of `grouplake alerts`."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.alerts.rules_file import EXAMPLE, load_rules
from pipelines.alerts.run import alert_evaluator

#: Name of the file that gets the notifications, under the folder of the tables.
NOTIFICATIONS = "alerts.jsonl"

_COMMAND = 'command = ["tee", "--append", "alerts.jsonl"]'
_OWNERS = """
[[owners]]
groups = "billing|payments-ledger|ledger-export|report-monthly"
team = "payments"

[[owners]]
groups = "search-indexer|recommendations|clickstream-sessions"
team = "discovery"

[[owners]]
groups = "connect-.*|analytics-nightly"
team = "data"
"""


@contextmanager
def alert_history(root: str) -> Iterator[Callable[[int], None]]:
    """A function that evaluates the example rules at a time in ms, on the newest tables under `root`.

    Notifications are appended to a file, by the command of the example.
    """
    now = [0]
    path = str(Path(root).resolve() / NOTIFICATIONS).replace("\\", "\\\\").replace('"', '\\"')
    text = EXAMPLE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "alerts.toml")
        file.write_text(text.replace(_COMMAND, _COMMAND.replace(NOTIFICATIONS, path)) + _OWNERS, encoding="utf-8")
        rules = load_rules(str(file))

    def evaluate(at: int) -> None:
        now[0] = at
        evaluator.evaluate()

    with alert_evaluator(root, root, rules, lambda: now[0], lambda _line: None) as evaluator:
        yield evaluate
