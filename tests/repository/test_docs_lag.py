"""docs/lag.md names every column, method, reason, status and rule, in the order of the code where the order has a meaning."""

import re
from pathlib import Path

from coordinator_core.health import BURROW_RULES, DEFAULT_KEEP, GROUP_RULES, LAG_SCHEMA, LagMethod, LagReason, Status, keep_rules

TEXT = (Path(__file__).parents[2] / "docs/lag.md").read_text(encoding="utf-8")
#: Names in code style at the start of table rows.
LISTED = [name for row in re.findall(r"^\|((?: `\w+`,?)+) \|", TEXT, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]


def test_every_column_is_explained() -> None:
    assert [name for name in LAG_SCHEMA.names if f"`{name}`" not in TEXT] == []


def test_methods_reasons_and_statuses() -> None:
    assert [name for name in LISTED if name in set(LagMethod)] == list(LagMethod)
    assert set(LagReason) <= set(LISTED)
    assert [name for name in LISTED if name in set(Status)] == list(Status)


def test_rules_in_their_order() -> None:
    names = [rule.name for rule in (*BURROW_RULES, *GROUP_RULES)]
    listed = re.findall(r"^\| `(\w+)` \|.*\| `[A-Z]+` \|$", TEXT, re.MULTILINE)
    assert [name for name in listed if name in names] == names


def test_status_of_each_rule() -> None:
    stated = dict(re.findall(r"^\| `(\w+)` \|.*\| `([A-Z]+)` \|$", TEXT, re.MULTILINE))
    assert {rule.name: rule.status for rule in (*BURROW_RULES, *GROUP_RULES)}.items() <= stated.items()


def test_default_of_lag_keep() -> None:
    (text,) = re.findall(r"`lag\.keep`, default `([^`]+)`", TEXT)
    assert keep_rules(text) == DEFAULT_KEEP
