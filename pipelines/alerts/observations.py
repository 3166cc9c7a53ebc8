"""Observations of rules from the tables at one batch. Values of tables whose job has stopped are unknown."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.health.durations import duration_text
from pipelines.alerts.finding_texts import finding_words
from pipelines.alerts.rule_kinds import FORMER_FINDINGS, LABEL_NAMES, LEVELS, Unit
from pipelines.alerts.rules_file import AboveExpected, AlertRule
from pipelines.alerts.states import Above, Labels, Observation, holds_of_aggregate, is_label_name, labels_of
from pipelines.alerts.tables import LAG_VALUES, RuleTables
from pipelines.runtime.errors import UsageError

_BLANKS = re.compile(r"\s+")
#: Between labels in the key of a row.
_SEPARATOR = "\x1f"

#: Observations by the labels that identify their alerts.
Observations = dict[Labels, Observation]


def observe(rule: AlertRule, tables: RuleTables, active: Collection[Labels] | None) -> Observations | None:
    """Observations of a rule where its condition is true, and of its `active` alerts (None: all); None if nothing is known.

    Raises:
        UsageError: the rule cannot be evaluated, such as a query that names a column that does not exist.
    """
    if rule.kind.needs_current_tables and not tables.is_current:
        return None
    if rule.on in _SINGLE:
        return single(rule, _SINGLE[rule.on](rule, tables), tables.expected_seconds)
    return _OBSERVERS[rule.on](rule, tables, active)


def _of_partitions(rule: AlertRule, tables: RuleTables, active: Collection[Labels] | None) -> Observations | None:
    rows = tables.expiry if rule.on == "expires_in" else tables.lag
    if not rows.num_rows:
        return {} if rule.on == "expires_in" else None
    aggregate = rule.kind.aggregate
    assert aggregate is not None, "rules about partitions have an aggregate"
    assert rule.per is not None, "rules about partitions have a level"
    rows = _matching(_matching(rows, "group_id", rule.groups), "topic", rule.topics)
    columns = LEVELS[rule.per]
    values = rows.select([*columns, rule.on])
    grouped = values.group_by(list(columns)).aggregate(
        [(rule.on, aggregate.value), (rule.on, "count", pc.CountOptions(mode="only_null")), ([], "count_all")]
    )
    value, unknown, all_rows = grouped[f"{rule.on}_{aggregate.value}"], grouped[f"{rule.on}_count"], grouped["count_all"]
    known = pc.cast(value, pa.float64())
    holds = holds_of_aggregate(rule.condition, aggregate, known, unknown)
    found = pa.table(
        {
            **{LABEL_NAMES[name]: grouped[name].cast(pa.string()) for name in columns},
            "value": known,
            "holds": holds,
            "unknown_partitions": unknown,
            "partitions": all_rows,
        }
    )
    return _observations(rule, found, active, tables)


def _of_status(rule: AlertRule, tables: RuleTables, active: Collection[Labels] | None) -> Observations | None:
    rows = tables.status
    if not rows.num_rows:
        return None
    rows = _matching(rows, "group_id", rule.groups)
    holds = rule.condition.holds(rows["status"])
    if rule.findings:
        former = [name for name, present in FORMER_FINDINGS.items() if present in rule.findings]
        wanted = pc.is_in(tables.findings["rule"], pa.array([*rule.findings, *former], pa.string()))
        groups = tables.findings["group_id"].filter(wanted)
        # an unknown status remains unknown
        holds = pc.and_(holds, pc.is_in(rows["group_id"], groups.combine_chunks()))
    found = pa.table({"group": rows["group_id"], "value": rows["status"], "holds": holds, **_columns(rows, rule.kind.details)})
    return _observations(rule, found, active, tables)


def _of_rebalances(rule: AlertRule, tables: RuleTables, active: Collection[Labels] | None) -> Observations:
    rows = _matching(tables.rebalances(rule.window_ms), "group_id", rule.groups)
    value = rows["rebalance_storm"]
    found = pa.table({"group": rows["group_id"], "value": value, "holds": rule.condition.holds(value)})
    return _observations(rule, found, active, tables)


def _of_sql(rule: AlertRule, tables: RuleTables, active: Collection[Labels] | None) -> Observations:
    rows = tables.snapshot.query(rule.sql)
    names = rows.schema.names
    if names.count("value") != 1:
        raise UsageError(f"a query of a rule needs one column named value: {_BLANKS.sub(' ', rule.sql)}")
    for name in names:
        if not is_label_name(name) or names.count(name) > 1:
            raise UsageError(f"the column {name!r} of the query cannot be a label: letters, digits and '_' only, once each")
    values = rows["value"]
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    try:
        values = values.cast(pa.string() if is_text else pa.float64())
        holds = rule.condition.holds(values)
    except pa.ArrowException as error:
        raise UsageError(f"the values of the query do not fit the condition: {error}") from error
    found = pa.table(
        {**{name: rows[name].cast(pa.string()) for name in names if name != "value"}, "value": values, "holds": holds}
    )
    labels = {} if "group" not in names else {"group": rule.groups}
    for name, pattern in labels.items():
        found = _matching(found, name, pattern)
    observed = _observations(rule, found, active)
    # a query that selects defects no longer has a row of what is well again, which does not mean that it is gone
    cleared = {labels: Observation(labels, False, None, {"value": value_text(None, rule.kind.unit)}) for labels in active or ()}
    return {**cleared, **observed}


#: Kinds with one alert, without labels.
_SINGLE: dict[str, Callable[[AlertRule, RuleTables], float | None]] = {
    "quarantine": lambda rule, tables: tables.quarantined(rule.window_ms),
    "batch_age": lambda _, tables: tables.batch_age_ms / 1000,
    "sample_age": lambda _, tables: tables.sample_age_seconds(),
}
_OBSERVERS: dict[str, Callable[[AlertRule, RuleTables, Collection[Labels] | None], Observations | None]] = {
    "status": _of_status,
    "rebalance_storm": _of_rebalances,
    "sql": _of_sql,
    **dict.fromkeys((*LAG_VALUES, "expires_in"), _of_partitions),
}


def single(rule: AlertRule, value: float | None, expected_seconds: float | None) -> Observations:
    """The observation of a rule that has one alert, without labels.

    `expected_seconds` is the limit of a rule about more than the expected age; without one it is unknown whether it holds.
    """
    condition = rule.condition
    if isinstance(condition, AboveExpected):
        condition, value = (condition, None) if expected_seconds is None else (Above(expected_seconds), value)
    column = pa.chunked_array([pa.array([value], pa.float64())])
    return _observations(rule, pa.table({"value": column, "holds": condition.holds(column)}), ((),))


def _observations(
    rule: AlertRule, rows: pa.Table, active: Collection[Labels] | None, tables: RuleTables | None = None
) -> Observations:
    """Observations of the rows where the condition is true, and of the alerts that are `active` (None: all).

    The columns are labels, `value`, `holds`, and the details of the kind. Most rows are of no interest and become no objects.
    With `tables`, the labels name a group, and the words about its finding become details.
    """
    label_names = [name for name in rows.schema.names if name not in ("value", "holds", *rule.kind.details)]
    is_true = pc.fill_null(rows["holds"], False)
    kept = rows if active is None else rows.filter(is_true)
    if active:
        kept = pa.concat_tables([kept, _with_labels(rows.filter(pc.invert(is_true)), label_names, active)])
    found: Observations = {}
    for row in kept.to_pylist():
        labels = labels_of({name: row[name] for name in label_names if row[name] is not None})
        if labels in found:
            raise UsageError(f"two rows of the query have the same labels: {dict(labels)}")
        value = _finite(row["value"])
        details = {name: str(row[name]) for name in rule.kind.details if row.get(name) is not None}
        words = {} if tables is None or not row["holds"] else _words(rule, tables, dict(labels))
        found[labels] = Observation(labels, row["holds"], value, {**details, **words, "value": value_text(value, rule.kind.unit)})
    return found


def _words(rule: AlertRule, tables: RuleTables, labels: Mapping[str, str]) -> dict[str, str]:
    """Words about the finding behind an alert."""
    status = tables.status_of(labels["group"])
    if status is None:
        return {}
    partition = labels.get("partition")
    rules = rule.findings or rule.kind.findings
    return finding_words(status, rules, labels.get("topic"), None if partition is None else int(partition))


def _with_labels(rows: pa.Table, label_names: list[str], active: Collection[Labels]) -> pa.Table:
    """The rows with the labels of an active alert."""
    if not label_names or not rows.num_rows:
        return rows
    columns = [pc.fill_null(rows[name], "") for name in label_names]
    keys = [_SEPARATOR.join(dict(labels).get(name, "") for name in label_names) for labels in active]
    return rows.filter(pc.is_in(pc.binary_join_element_wise(*columns, _SEPARATOR), pa.array(keys, pa.string())))


def _finite(value: Any) -> float | str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value  # type: ignore[no-any-return]  # a number or a text, by the type of the column


def value_text(value: float | str | None, unit: Unit) -> str:
    """A value for people."""
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value
    return duration_text(value) if unit is Unit.SECONDS else f"{value:.15g}"


def _matching(rows: pa.Table, column: str, pattern: re.Pattern[str] | None) -> pa.Table:
    """The rows whose name matches as a whole."""
    if pattern is None:
        return rows
    names = [name for name in pc.unique(rows[column]).to_pylist() if name is not None and pattern.fullmatch(name)]
    return rows.filter(pc.is_in(rows[column], pa.array(names, pa.string())))


def _columns(rows: pa.Table, names: tuple[str, ...]) -> Mapping[str, pa.ChunkedArray]:
    return {name: rows[name] for name in names}
