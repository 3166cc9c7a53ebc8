"""Models of pages as JSON: times as ISO 8601 in UTC, no NaN."""

import json
from datetime import datetime
from typing import Any

from pipelines.dashboard.words.times import iso


def page_json(model: Any) -> str:
    """The text of a model."""
    return json.dumps(model, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return iso(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
