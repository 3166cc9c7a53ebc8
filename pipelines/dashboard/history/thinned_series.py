"""A time series with few enough points for a chart: the least and the greatest value of each bucket, so that spikes remain."""

from collections.abc import Sequence
from typing import Any

#: Points of a series on a page.
MOST_POINTS = 600


def thinned(points: Sequence[dict[str, Any]], value: str, most: int = MOST_POINTS) -> list[dict[str, Any]]:
    """At most about `most` of the points, which are in the order of time; the first and the last one are kept."""
    if len(points) <= most:
        return list(points)
    per_bucket = -(-2 * len(points) // most)
    kept: list[int] = [0]
    for start in range(0, len(points), per_bucket):
        numbers = [number for number in range(start, min(start + per_bucket, len(points))) if points[number][value] is not None]
        if not numbers:
            # a gap remains a gap
            kept.append(start)
            continue
        # so does one between values of the bucket
        bucket = range(max(1, start), min(start + per_bucket, len(points)))
        kept.extend(number for number in bucket if _begins_gap(points, number, value))
        extremes = {min(numbers, key=lambda n: points[n][value]), max(numbers, key=lambda n: points[n][value])}
        kept.extend(sorted(extremes))
    kept.append(len(points) - 1)
    return [points[number] for number in sorted(set(kept))]


def _begins_gap(points: Sequence[dict[str, Any]], number: int, value: str) -> bool:
    return points[number][value] is None and points[number - 1][value] is not None
