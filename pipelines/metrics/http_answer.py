"""The answer to a request for `/metrics`, for any HTTP server."""

import re

from pipelines.metrics.metrics_text import MetricsBody
from pipelines.runtime.probe_server import HttpAnswer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text"
#: Versions of OpenMetrics, which do not differ for gauges; the first one without a version in the request.
_VERSIONS = ("1.0.0", "0.0.1")
_WEIGHT = re.compile(r"[01](\.[0-9]{0,3})?")


def metrics_answer(body: MetricsBody, if_none_match: str, accept_encoding: str, accept: str = "") -> HttpAnswer:
    """The text, compressed for clients that accept it; 304 for a client that has it. The arguments are headers, or empty.

    It is OpenMetrics for clients that prefer it, as Prometheus does, otherwise the text format 0.0.4.
    """
    version = openmetrics_version(accept)
    found = body if version is None else body.openmetrics
    headers = {"ETag": found.etag, "Vary": "Accept, Accept-Encoding", "Cache-Control": "no-cache"}
    if found.etag in (tag.strip() for tag in if_none_match.split(",")):
        return HttpAnswer(304, headers, b"")
    headers["Content-Type"] = CONTENT_TYPE if version is None else f"{_OPENMETRICS}; version={version}; charset=utf-8"
    if accepts_gzip(accept_encoding):
        return HttpAnswer(200, {**headers, "Content-Encoding": "gzip"}, found.compressed)
    return HttpAnswer(200, headers, found.text)


def openmetrics_version(header: str) -> str | None:
    """The version of OpenMetrics that a header Accept prefers to plain text; None if it does not."""
    openmetrics: list[tuple[float, str]] = []
    plain = 0.0
    for part in header.lower().split(","):
        kind, *given = (each.strip() for each in part.split(";"))
        parameters = dict(each.split("=", 1) for each in given if "=" in each)
        weight = _weight(parameters.get("q", "1"))
        version = parameters.get("version", _VERSIONS[0])
        if kind == _OPENMETRICS and version in _VERSIONS and weight:
            openmetrics.append((weight, version))
        elif kind == "text/plain":
            plain = max(plain, weight)
    best = max(openmetrics, default=None)
    return None if best is None or best[0] < plain else best[1]


def _weight(text: str) -> float:
    """The weight of a media type; 0 for text that is none."""
    return min(1.0, float(text)) if _WEIGHT.fullmatch(text) else 0.0


def accepts_gzip(header: str) -> bool:
    """Whether a header Accept-Encoding allows gzip."""
    for part in header.lower().split(","):
        coding, _, parameters = part.strip().partition(";")
        if coding.strip() in ("gzip", "*"):
            weight = parameters.strip().removeprefix("q=")
            return not weight or weight.strip("0.") != ""
    return False
