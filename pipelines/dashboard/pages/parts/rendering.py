"""Pages from templates. Everything that a template prints is escaped, and an unknown name is an error."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pipelines.dashboard.formatting import alerts, names, quantities, reasons, statuses, times, times_in_text

_FILTERS = {
    "count": quantities.count,
    "short_count": quantities.short_count,
    "duration": quantities.duration,
    "short_duration": quantities.short_duration,
    "rate": quantities.rate,
    "age": quantities.age,
    "share": quantities.share,
    "plural": quantities.plural,
    "visible": names.visible,
    "clock": times.clock,
    "minute": times.minute,
    "full_time": times.full,
    "iso": times.iso,
    "field_time": times.field_time,
    "timed": times_in_text.timed,
    "status_words": statuses.status_words,
    "alert_state": alerts.alert_state,
    "alert_value": alerts.alert_value,
    "alert_reason": alerts.alert_reason,
    "subject_texts": alerts.subject_texts,
    "subject_labels": alerts.subject_labels,
    "other_labels": alerts.other_labels,
    "pace": quantities.pace,
    "lag_reason": reasons.lag_reason,
    "rule_label": reasons.rule_label,
    "unconsumed_words": reasons.unconsumed_words,
}
_FUNCTIONS = {
    "interval": quantities.interval,
    "window": quantities.window,
    "since": times.since,
    "until": times.until,
    "after": times.after,
    "comes": times.comes,
    "margin": times.margin,
    "partition_name": reasons.partition_name,
}


class Templates:
    """The templates of all pages, which stand beside their modules."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("pipelines.dashboard", "pages"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(_FILTERS)
        self._environment.globals.update(_FUNCTIONS)

    def render(self, template: str, context: Mapping[str, Any]) -> str:
        """The text of a page."""
        return self._environment.get_template(template).render(context)
