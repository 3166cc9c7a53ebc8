"""Records as text, in the form of Kafka's own formatters."""

from coordinator_core.codec.text.classic_lines import classic_line
from coordinator_core.codec.text.json_forms import json_form, transaction_json_form

__all__ = ["classic_line", "json_form", "transaction_json_form"]
