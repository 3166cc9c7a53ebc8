"""Runs of rebalances as one event, so that a storm does not hide what else happened."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pipelines.dashboard.words.quantities import duration

#: A run has at least this many rebalances, each soon after the one before.
_LEAST = 5
_SOON = timedelta(minutes=10)


def folded(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, the newest first; a run of rebalances is one of kind `storm` with its `events`."""
    found: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []
    for event in events:
        if run and (event["kind"] != "rebalance" or run[-1]["at"] - event["at"] > _SOON):
            found += _folded(run)
            run = []
        if event["kind"] == "rebalance":
            run.append(event)
        else:
            found.append(event)
    return [*found, *_folded(run)]


def _folded(run: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(run) < _LEAST:
        return run
    last, first = run[0]["at"], run[-1]["at"]
    words = f"{len(run)} rebalances within {duration((last - first).total_seconds())}"
    return [{"at": last, "kind": "storm", "words": words, "events": run}]
