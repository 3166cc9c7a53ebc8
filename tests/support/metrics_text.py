"""Prometheus' own parser on the text of `/metrics`."""

from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]


def series(text: bytes) -> dict[str, dict[Labels, float]]:
    """Name → labels → value. AssertionError for a series that occurs twice, or a name with more than one header."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text.decode()):
        assert family.name not in found, f"two groups of lines of {family.name}"
        of_name = found[family.name] = {}
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert sample.name == family.name
            assert labels not in of_name, f"twice: {sample.name} {labels}"
            assert sample.timestamp is None
            of_name[labels] = sample.value
    return found


def values(text: bytes, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Values of a metric by the values of some labels."""
    return {tuple(dict(each)[label] for label in labels): value for each, value in series(text).get(name, {}).items()}
