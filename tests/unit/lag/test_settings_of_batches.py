"""The settings of the status in a row of `batches`."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.health import DEFAULT_SETTINGS, StatusSettings
from pipelines.lag.settings import settings_of, settings_text
from pipelines.tables.store import Batch

AT = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = Batch(0, AT, AT, 1, "4", 1, 0, 0, {}, {}, {})


@given(st.fixed_dictionaries({name: st.integers(0, 10**12) | st.floats(0, 1e9) for name in StatusSettings._fields}))
def test_settings_are_those_that_were_written(values: dict[str, int | float]) -> None:
    settings = StatusSettings(**values)  # type: ignore[arg-type]  # whole numbers and fractions alike
    assert settings_of(replace(BATCH, status_settings=settings_text(settings))) == settings


def test_a_batch_of_an_earlier_layout_has_the_defaults() -> None:
    assert settings_of(BATCH) == DEFAULT_SETTINGS


def test_settings_of_other_versions() -> None:
    stored = json.dumps({"hot_ratio": 7.5, "limit_of_a_newer_version": 1})
    assert settings_of(replace(BATCH, status_settings=stored)) == DEFAULT_SETTINGS._replace(hot_ratio=7.5)
