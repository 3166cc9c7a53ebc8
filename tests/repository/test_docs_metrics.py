"""docs/metrics.md names every metric, and only metrics that exist."""

import re
from itertools import product
from pathlib import Path

from pipelines.metrics.catalogue import METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
#: Metrics that are made outside of the catalogue.
OTHERS = {
    *("grouplake_metrics_series_dropped", "grouplake_tables_up", "grouplake_tables_old", "grouplake_end_offsets_old"),
    *("grouplake_log_behind_offsets", "grouplake_transaction_log_behind_offsets"),
    *("grouplake_otlp_dropped_points", "grouplake_otlp_dropped_spans"),
}


def expanded(text: str) -> set[str]:
    """`a_{b,c}` → `a_b` and `a_c`."""
    parts = [part.strip("{}").split(",") for part in re.findall(r"\{[^}]*\}|[^{}]+", text)]
    return {"".join(each) for each in product(*parts)}


def test_every_metric_is_named() -> None:
    families = PAGE[PAGE.index("## Families") : PAGE.index("## Boards and rules")]
    named: set[str] = set()
    for text in re.findall(r"`((?:kafka|kminion|burrow|klag|grouplake)_[a-z_{},]+)`", families):
        named |= expanded(text)
    # "both with `_sum`"
    named |= {f"kafka_consumergroup_{name}_sum" for name in ("lag", "current_offset")}
    assert {metric.name for metric in METRICS} | OTHERS == named - {"kafka_exporter", "burrow_exporter"}
