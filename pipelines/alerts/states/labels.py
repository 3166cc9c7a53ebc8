"""Labels of alerts, and the identifiers that follow from them."""

import re
from collections.abc import Mapping

#: Names and values in the order of names.
Labels = tuple[tuple[str, str], ...]

#: The label with the name of the rule, as in Prometheus.
ALERT_NAME = "alertname"

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_FNV_OFFSET = 14_695_981_039_346_656_037
_FNV_PRIME = 1_099_511_628_211
_SEPARATOR = 255


def labels_of(values: Mapping[str, str]) -> Labels:
    """The labels in order. Empty values are left out, as Prometheus does."""
    return tuple(sorted((name, value) for name, value in values.items() if value))


def is_label_name(text: str) -> bool:
    """Whether Prometheus and Alertmanager accept the name of a label."""
    return _NAME.fullmatch(text) is not None


def fingerprint(labels: Labels) -> str:
    """The fingerprint that Alertmanager computes from labels: FNV-1a of 64 bits, in hex."""
    state = _FNV_OFFSET
    for name, value in labels:
        for part in (name, value):
            for byte in (*part.encode(), _SEPARATOR):
                state = ((state ^ byte) * _FNV_PRIME) & 0xFFFF_FFFF_FFFF_FFFF
    return f"{state:016x}"


def group_key(labels: Labels) -> str:
    """The key of a group of alerts as Alertmanager prints it, such as `{}:{alertname="GroupStopped"}`."""
    return "{}:{" + ", ".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
