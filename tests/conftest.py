"""Hypothesis profiles: `deterministic` for every run, `exhaustive` (HYPOTHESIS_PROFILE=exhaustive) to search further."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "deterministic", derandomize=True, database=None, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("exhaustive", max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))
