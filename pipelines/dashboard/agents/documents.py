"""Resources: tables, views, columns and rules, from the texts that the product itself has."""

from collections.abc import Sequence

from coordinator_core.health import EXPLANATIONS, GROUP_RULES, rule_label
from coordinator_core.health.burrow_rules import BURROW_RULES
from pipelines.dashboard.formatting.statuses import STATUSES
from pipelines.dashboard.state.errors import InvalidRequest
from pipelines.tables import definitions
from pipelines.tables.descriptions import description

NAMES = (*definitions.WRITE_ORDER, *definitions.ALERTS, *definitions.VIEWS)


def tables_document() -> str:
    """Names and descriptions of all tables and views, as `grouplake sql` lists them."""
    return "\n".join(f"- {name}: {description(name)}" for name in NAMES)


def table_document(name: str) -> str:
    """Columns of a table with their comments, or the text of a view. Raises InvalidRequest for another name."""
    if name in definitions.VIEWS:
        return definitions.view_text(name)
    if name not in NAMES:
        raise InvalidRequest(f"no table or view {name!r}: grouplake://tables lists them")
    found = definitions.table(name)
    columns = [f"- {field.name}: {found.comments[field.name]}" for field in found.schema]
    return "\n".join([f"{name}: {found.description}", *columns])


def rules_document() -> str:
    """The rules of statuses, what explains what, and the statuses from the worst on."""
    lines = [f"- {rule.name} → {rule.status}" for rule in GROUP_RULES]
    lines += [f"- {rule_label(rule.name)} → {rule.status}" for rule in BURROW_RULES]
    causes = [f"- {each.cause} explains {_names(each.symptoms)}" for each in EXPLANATIONS]
    return "\n".join(
        ["Statuses, the worst first: " + ", ".join(STATUSES), "", "Rules:", *lines, "", "A cause and its symptoms:", *causes]
    )


def _names(rules: Sequence[str]) -> str:
    return ", ".join(rules)
